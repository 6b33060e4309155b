"""One rank of another project's unittest suite: runs its main program, and writes how each test ended.

Usage: suite_rank.py FOLDER MAIN [ARGUMENT...]: FOLDER/RANK gets a line `OUTCOME TEST` for each test, as it ends.
"""

import os
import runpy
import sys
import unittest
from pathlib import Path

RANK = next(os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK") if name in os.environ)
folder, main, *arguments = sys.argv[1:]
written = (Path(folder) / RANK).open("w", encoding="utf-8", buffering=1)


class OutcomeWriter(unittest.TextTestResult):
    """Result that also writes each outcome."""

    def addSuccess(self, test):
        super().addSuccess(test)
        print("passed", test.id(), file=written)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print("skipped", test.id(), file=written)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print("failed", test.id(), file=written)

    def addError(self, test, err):
        super().addError(test, err)
        print("failed", test.id(), file=written)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            print("failed", subtest.id(), file=written)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        print("failed as expected", test.id(), file=written)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        print("passed unexpectedly", test.id(), file=written)


unittest.TextTestRunner.resultclass = OutcomeWriter
sys.argv = [main, *arguments]
sys.path.insert(0, str(Path(main).parent))
runpy.run_path(main, run_name="__main__")
