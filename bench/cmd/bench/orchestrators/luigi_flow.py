"""The sequence and the fan-out as Luigi's tasks, each with a file that it makes."""

from pathlib import Path

import luigi
import work


class Written(luigi.Task):
    def write(self, value):
        with self.output().open("w") as out:
            out.write(f"{value}\n")

    def read(self, target):
        return work.number(target.path)


class Step(Written):
    n = luigi.IntParameter()
    at = luigi.IntParameter()

    def requires(self):
        return [Step(n=self.n, at=self.at - 1)] if self.at > 1 else []

    def output(self):
        return luigi.LocalTarget(f"made/{self.at}.txt")

    def run(self):
        self.write(work.step(self.n, self.read(self.input()[0]) if self.at > 1 else 0))


class Chain(Written):
    n = luigi.IntParameter()
    tasks = luigi.IntParameter()

    def requires(self):
        return Step(n=self.n, at=self.tasks)

    def output(self):
        return luigi.LocalTarget("out.txt")

    def run(self):
        self.write(self.read(self.input()))


class Count(Written):
    path = luigi.Parameter()

    def output(self):
        return luigi.LocalTarget(f"made/{Path(self.path).name}")

    def run(self):
        self.write(work.count(self.path))


class Fan(Written):
    folder = luigi.Parameter()

    def requires(self):
        return [Count(path=str(path)) for path in sorted(Path(self.folder).iterdir())]

    def output(self):
        return luigi.LocalTarget("out.txt")

    def run(self):
        self.write(work.gather([self.read(made) for made in self.input()]))
