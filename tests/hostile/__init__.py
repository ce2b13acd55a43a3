"""Damaged models made at random, and what a process says that reads and runs them.

By hand, for many of them: ``python -m hostile 20000`` in the folder of the tests.
"""
