"""The tasks themselves, the same for every tool.

As a program: work.py step N [FILE], work.py count FILE, work.py gather FILE...
"""

import sys


def fibo(n):
    return n if n <= 1 else fibo(n - 1) + fibo(n - 2)


def step(n, before):
    """One of a sequence: adds to what the task before has made."""
    return before + fibo(n)


def count(path):
    """The lines of a file."""
    with open(path) as lines:
        return sum(1 for _ in lines)


def gather(numbers):
    """How many numbers there are, and their sum."""
    return f"{len(numbers)} {sum(numbers)}"


def number(path):
    with open(path) as text:
        return int(text.read())


def main(what, *args):
    if what == "step":
        return step(int(args[0]), number(args[1]) if len(args) > 1 else 0)
    if what == "count":
        return count(args[0])
    return gather([number(path) for path in args])


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
