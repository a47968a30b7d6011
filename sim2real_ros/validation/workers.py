# SPDX-License-Identifier: Apache-2.0
"""`Workers`: tasks on the cores of this machine (loky) or of a cluster (Dask, Ray), handed out one by one from here.

A worker that dies loses no task: what it had not given back runs again. Tasks that were under way when a worker died run
one by one, so that the one to blame shows; the third death is reported. joblib's `Parallel` over the same three cannot
say which tasks came back before a death, nor stop early, so tasks are handed to their executors directly.
"""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from typing import TypeVar
from urllib.parse import urlsplit

from sim2real_ros.children import end_with_parent
from sim2real_ros.errors import DependencyError, RunError, Sim2RealError

DEATHS = 3  # of workers with one task, before it is given up
ONE_THREAD = dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'), '1')  # in each worker

Task = TypeVar('Task')
Result = TypeVar('Result')
Submit = Callable[..., Future]


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


class Workers:
    """Where tasks run.

    Attributes:
        jobs: tasks at a time.
    """

    def __init__(self, jobs: int | None = None, scheduler: str | None = None) -> None:
        """Choose.

        Args:
            jobs: processes on this machine; 1 runs everything in this one, None takes every core.
            scheduler: address of a cluster instead, `tcp://HOST:PORT` of a Dask scheduler, or `ray://HOST:PORT`. Its workers
                need this package in the same version, and the policy and robot files under the same paths.

        Raises:
            DependencyError: joblib, or the package of the scheduler, is missing.
            RunError: there is no such scheduler.
        """
        self._close: Callable[[], None] = _nothing
        self._here = scheduler is None and jobs == 1
        self.jobs = jobs or cores()
        self._submit: Submit | None = None
        self._breaks = False  # whether one death takes the whole pool along
        if scheduler is not None:
            self._submit, self.jobs, self._close = connect(scheduler)
        elif not self._here:
            self._loky()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self._close()

    def each(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        """Do tasks and yield them with their results as they come to their end, in any order.

        Args:
            work: a function of a module, pure: it may be called twice.
            tasks: hashable; taken one by one as workers become free, so that they may stop at any time.

        Raises:
            RunError: a task killed its worker three times.
        """
        if self._here:
            for task in tasks:
                yield task, work(task)
            return
        deaths, suspects, waiting = Counter[Task](), deque[Task](), iter(tasks)
        under_way: dict[Future, Task] = {}
        try:
            while True:
                if suspects and not under_way:
                    self._start(work, suspects.popleft(), under_way, suspects)
                while not suspects and not any(map(deaths.__getitem__, under_way.values())) and len(under_way) < self.jobs:
                    if not (more := list(islice(waiting, 1))):
                        break
                    self._start(work, more[0], under_way, suspects)
                if not under_way:
                    if suspects:
                        continue
                    return
                dead: list[Task] = []
                why: object = None
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    task = under_way.pop(future)
                    if _died(error := future.exception()):
                        dead.append(task)
                        why = error
                    else:
                        yield task, future.result()
                if dead:
                    self._bury(dead, why, under_way, deaths, suspects)
        finally:
            for future in under_way:
                future.cancel()

    def _start(self, work: Callable[[Task], Result], task: Task, under_way: dict[Future, Task], suspects: deque[Task]) -> None:
        assert self._submit is not None
        try:
            under_way[self._submit(_do, work, task)] = task
        except Exception as error:
            if not (self._breaks and _died(error)):
                raise
            suspects.append(task)  # no fault of its own: a worker has died since, and what is under way will say so
            if not under_way:
                self._loky()

    def _bury(
        self, dead: list[Task], why: object, under_way: dict[Future, Task], deaths: Counter[Task], suspects: deque[Task]
    ) -> None:
        """Note who died, with whatever else the pool took along; raises RunError at the third death of a task."""
        for future in list(under_way) if self._breaks else []:
            dead.append(under_way.pop(future))
        deaths.update(dead)
        worst = [task for task in dead if deaths[task] >= DEATHS]
        if worst:
            raise RunError(f'{worst[0]} killed its worker {DEATHS} times; out of memory? The last time: {why}')
        suspects.extend(dead)
        if self._breaks:
            self._loky()

    def _loky(self) -> None:
        try:
            from joblib.externals.loky import ProcessPoolExecutor  # noqa: PLC0415 - optional
        except ImportError as error:
            raise DependencyError(f'validation needs joblib ({error}): pip install "sim2real_ros[validate]"') from None
        self._close()
        pool = ProcessPoolExecutor(
            self.jobs, env=ONE_THREAD, initializer=end_with_parent, initargs=(os.getpid(), signal.SIGTERM)
        )
        self._submit, self._breaks = pool.submit, True
        self._close = lambda: pool.shutdown(wait=False, kill_workers=True)


def connect(scheduler: str) -> tuple[Submit, int, Callable[[], None]]:
    """Connect to a cluster; returns how to submit to it, its number of threads, and how to leave it."""
    kind = urlsplit(scheduler).scheme
    if kind in ('tcp', 'tls'):
        return _dask(scheduler)
    if kind == 'ray':
        return _ray(scheduler)
    raise RunError(f'--scheduler {scheduler}: tcp://HOST:PORT (Dask) or ray://HOST:PORT is expected')


def _dask(scheduler: str) -> tuple[Submit, int, Callable[[], None]]:
    try:
        from distributed import Client  # noqa: PLC0415 - optional
    except ImportError as error:
        raise DependencyError(f'--scheduler {scheduler} needs Dask ({error}): pip install "sim2real_ros[dask]"') from None
    try:
        client = Client(scheduler, timeout='5s', set_as_default=False)
    except Exception as error:  # of many kinds, by what listens there
        raise RunError(f'--scheduler {scheduler}: there is no Dask scheduler ({error})') from None
    threads = sum(client.nthreads().values())
    if not threads:
        client.close()
        raise RunError(f'--scheduler {scheduler}: it has no workers; start some with: dask worker {scheduler}')
    return client.get_executor(pure=False).submit, threads, client.close


def _ray(scheduler: str) -> tuple[Submit, int, Callable[[], None]]:
    try:
        import ray  # noqa: PLC0415 - optional
    except ImportError as error:
        raise DependencyError(f'--scheduler {scheduler} needs Ray ({error}): pip install "sim2real_ros[ray]"') from None
    try:
        ray.init(scheduler)
    except (ConnectionError, ValueError) as error:
        raise RunError(f'--scheduler {scheduler}: there is no Ray cluster ({error})') from None
    remote = ray.remote(max_retries=0)(_call)
    return (
        lambda function, *given: remote.remote(function, *given).future(),
        max(1, int(ray.cluster_resources().get('CPU', 1))),
        ray.shutdown,
    )


def _call(function: Callable[..., Result], *given: object) -> Result:
    return function(*given)


def _died(error: BaseException | None) -> bool:
    """Return whether an error is the death of a worker: of loky and Dask, or of Ray."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {'BrokenProcessPool', 'KilledWorker', 'WorkerCrashedError'})


def _nothing() -> None:
    pass


def _do(work: Callable[[Task], Result], task: Task) -> Result:
    try:
        return work(task)
    except Sim2RealError as error:
        raise RunError(f'{task}: {error}') from None  # of a kind that travels between processes
