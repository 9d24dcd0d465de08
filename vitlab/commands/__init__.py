"""The command line: ``minivit train``, ``eval``, ``predict``, ``look``, ``audit``, ``export``, ...

Bad input gives a message and exit code 2; `predict` continues with the next image, and ends with 2.
"""

import io
import os
import platform
import shlex
import sys
from typing import Any

import torch
import tyro

import minivit
from vitlab.claims.measuring import out_of_memory
from vitlab.commands.audit import Audit
from vitlab.commands.command import complain
from vitlab.commands.evaluate import Eval, Export, Models
from vitlab.commands.predict import Look, Predict
from vitlab.commands.train import Train
from vitlab.training.loop import Stopped


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; gives the exit code: 0, or 2 for bad input, or 128 + a signal's number."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names that are not UTF-8
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        others = f"Python {platform.python_version()}, torch {torch.__version__}"
        print(f"minivit {minivit.__version__} ({others})")
        return 0
    command: Any = tyro.cli(
        Train | Eval | Predict | Look | Audit | Export | Models,
        prog="minivit",
        description="Vision transformers, small to read. --version tells which.",
        args=arguments,
        config=(tyro.conf.DisallowNone, tyro.conf.OmitArgPrefixes),
    )
    typed = shlex.join(["python", "-m", "vitlab", *arguments])
    try:
        for option in ("threads", "top", "size", "batch_size"):
            if (count := getattr(command, option, None)) is not None and count < 1:
                name = option.replace("_", "-")
                raise ValueError(f"expected a whole number, at least 1: got --{name} {count}")
        if getattr(command, "threads", None):
            torch.set_num_threads(command.threads)
        code: int = command.run(typed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # who reads this has read enough; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # SIGPIPE, which Windows does not have
    except (ValueError, OSError, ImportError, FloatingPointError) as error:
        return complain(error)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        return complain("out of memory: try a smaller --batch-size")
    except Stopped as stopped:
        again = typed if command.resume else f"{typed} --resume"
        print(f"{stopped}. To continue:\n    {again}", file=sys.stderr)
        return 128 + stopped.signum
    except KeyboardInterrupt:
        return 130
