"""Functions for worker processes, which can import them here even if they were forked before."""

import multiprocessing
import os


def state(name):
    return os.environ.get(name), os.getcwd(), multiprocessing.parent_process() is not None


def die(number):
    os._exit(number)
