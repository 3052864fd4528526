"""The grader on dask workers: two machines of one core each, against one of them.

A lane keeps more than one core busy (the box answers while the verdict is taken), so on a machine
of two cores each worker is held to its own core, with the box that it starts.
"""

import os
import tempfile
import time
from pathlib import Path

import distributed

from benchmarks import grading
from exercises.grading import batch

SUBMISSIONS = max(grading.PEERS, grading.LARGE // 5)


def hold(core: int) -> None:
    """All threads of this process, and what they start, on one core."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {core})


def seconds(place: Path, out: Path, workers: int) -> float:
    """Seconds of a class on so many workers, all warm."""

    def run(name: str) -> float:
        one = batch.Batch(grading.WEEK, out / name, "bwrap", "bench")
        one.read(place)
        begin = time.perf_counter()
        batch.run_dask(one, one.todo(False), cluster.scheduler_address, one.save)
        return time.perf_counter() - begin

    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        with distributed.Client(cluster) as client:
            places = sorted(client.scheduler_info()["workers"])
            for core, worker in zip(sorted(os.sched_getaffinity(0)), places, strict=False):
                client.run(hold, core, workers=[worker])
        run("warm")
        return run("timed")


def rows() -> list[dict]:
    os.environ["PYTHONPATH"] = str(grading.ROOT)
    batch.SHARD = max(1, SUBMISSIONS // 40)  # as many shards as a thousand submissions make
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        grading.handed_in(root / "class", SUBMISSIONS)
        one, two = (seconds(root / "class", root / f"out{n}", n) for n in (1, 2))
    name = "grading, two dask workers of one core each (one)"
    return [{"name": name, "ours": two, "peer": one, "ratio": one / two, "unit": "s"}]
