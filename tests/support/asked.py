"""Functions for worker processes, which can import them here even if they were forked before."""

import multiprocessing
import os
import signal
import threading


def state(name):
    return os.environ.get(name), os.getcwd(), multiprocessing.parent_process() is not None


def die(number):
    os._exit(number)


def interrupt(seconds: float) -> None:
    """Interrupts all processes of the terminal, as Ctrl-C does."""
    os.killpg(0, signal.SIGINT)
    threading.Event().wait(seconds)
