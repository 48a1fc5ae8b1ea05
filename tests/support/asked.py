"""What worker processes are asked to do; they find it here whatever was imported before they were forked."""

import multiprocessing
import os


def say(name):
    return os.environ.get(name), os.getcwd(), multiprocessing.parent_process() is not None


def die(number):
    os._exit(number)
