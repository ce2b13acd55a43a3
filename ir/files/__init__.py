"""Between a model and its pair of files; today what reads the versions of before 2020."""
