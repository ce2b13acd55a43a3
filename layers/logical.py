"""Boolean logic, element by element."""
