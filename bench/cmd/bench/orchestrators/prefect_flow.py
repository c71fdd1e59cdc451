"""The sequence and the fan-out as Prefect's flows.

prefect_flow.py chain N TASKS, prefect_flow.py fan FOLDER AT_ONCE
"""

import sys
from pathlib import Path

import work
from prefect import flow, task
from prefect.task_runners import ThreadPoolTaskRunner


@task
def step(n, before):
    return work.step(n, before)


@task
def count(path):
    return work.count(path)


@task
def gather(numbers):
    return work.gather(numbers)


@flow
def chain(n, tasks):
    value = 0
    for _ in range(tasks):
        value = step(n, value)
    return value


@flow
def fan(folder):
    return gather.submit(count.map(sorted(map(str, Path(folder).iterdir())))).result()


if __name__ == "__main__":
    if sys.argv[1] == "chain":
        result = chain(int(sys.argv[2]), int(sys.argv[3]))
    else:
        result = fan.with_options(task_runner=ThreadPoolTaskRunner(max_workers=int(sys.argv[3])))(sys.argv[2])
    Path("out.txt").write_text(f"{result}\n")
