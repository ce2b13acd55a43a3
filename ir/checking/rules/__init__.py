"""What is looked at in a file, by group: each rule a small function that yields notes."""
