"""Trained models that all studies share: each is trained once, and can be resumed.

The result of a training is stored in ``book/results/runs``, under the key of its run: scores,
curve, and where, when and by which code. Weights and states stay in ``studies/runs``.
"""

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from studies.runner.run import Run, train_one
from studies.runner.storage import HERE, Figures, Store
from vitlab.training.state import MODEL


def result(run: Run, store: Store = HERE) -> Figures | None:
    """The stored result of a run, or none if it is still to be trained."""
    path = store.result(run.key)
    return json.loads(path.read_text()) if path.exists() else None


def results(runs: Sequence[Run], store: Store = HERE) -> list[Figures]:
    return [stored for run in runs if (stored := result(run, store))]


def weights_of(run: Run, store: Store = HERE) -> Path:
    """The file of a trained model, which is on the machine that trained it."""
    return store.folder(run.key) / MODEL


def gather(runs: Sequence[Run], workers: int = 1, store: Store = HERE) -> list[Figures]:
    """Trains what is missing, on one thread each, and gives the results in the order of the runs.

    A training that is interrupted, by a signal or the end of this process, saves its state and
    resumes from there the next time. One that fails is raised when those under way are done.
    """
    missing = list({run.key: run for run in runs if result(run, store) is None}.values())
    if workers == 1:
        for run in missing:
            _report(train_one(run, store))
    elif missing:
        spawn = multiprocessing.get_context("spawn")  # a fork can hang in torch's threads
        with ProcessPoolExecutor(workers, spawn, _follow) as pool:
            try:
                for future in as_completed([pool.submit(_work, run, store) for run in missing]):
                    _report(future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return results(runs, store)


def _report(stored: Figures) -> None:
    run, scores = stored["run"], stored["scores"]
    score = f"{scores['validation']['accuracy']:.3f}" if scores else "diverged"
    what = run["model"], run["changes"], run.get("removed", "")
    print(stored["key"], *what, f"seed {run['recipe']['seed']}: {score}", flush=True)


def _follow() -> None:
    """Ends this process as a signal would, its training saved, when its parent is gone."""
    parent = multiprocessing.parent_process()
    assert parent

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _work(run: Run, store: Store) -> Figures:
    try:
        return train_one(run, store)
    except KeyboardInterrupt as stopped:  # no other training must begin in this process
        print(f"{run.key} {stopped}", flush=True)
        os._exit(1)
