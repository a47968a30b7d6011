# SPDX-License-Identifier: Apache-2.0
"""Promises of a study: neither workers, nor their deaths, nor interruptions change what comes out; nothing counts twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip('scipy', reason='the extra `validate` is not installed')
pytest.importorskip('joblib', reason='the extra `validate` is not installed')
pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')

from validation_rig import deadly, level, refuse, trial  # noqa: E402

from sim2real_ros.errors import DependencyError, DocumentError, RunError  # noqa: E402
from sim2real_ros.validation.fingerprint import fingerprint  # noqa: E402
from sim2real_ros.validation.ledger import Ledger  # noqa: E402
from sim2real_ros.validation.plan import chunks, plan  # noqa: E402
from sim2real_ros.validation.study import Study, conduct  # noqa: E402
from sim2real_ros.validation.workers import Workers  # noqa: E402

CLAIM = {'success': 0.8}


def study(episodes=24, early=False, **changes) -> Study:
    return Study(trial(seconds=1.0, claim=CLAIM, **changes), episodes, early)


def opened(path: Path, own: Study, **options) -> Ledger:
    return Ledger(path, fingerprint(own.trial), **options)


def conducted(path: Path, own: Study, jobs=1, seen=None):
    with opened(path, own) as ledger, Workers(jobs) as workers:
        return conduct(own, ledger, workers, seen)


@pytest.fixture(scope='module')
def reference(tmp_path_factory):
    path = tmp_path_factory.mktemp('reference') / 'episodes.jsonl'
    return conducted(path, study()), path.read_bytes()


def test_every_beginning_of_a_plan_has_each_scenario_by_its_share():
    own = level()
    order = plan(own, 1000)
    assert plan(own, 300) == order[:300]
    for n in (10, 50, 333, 1000):
        counts = Counter(episode.scenario for episode in order[:n])
        assert all(abs(counts[name] - scenario.share * n) <= 1 for name, scenario in own.scenarios.items())
    assert len(set(order)) == 1000


@pytest.mark.parametrize('size', [8, 64])
def test_every_episode_that_is_not_done_is_dealt_out_once(size):
    order = plan(level(), 300)
    done = {str(episode) for episode in order[:50:3]}
    dealt = [f'{chunk.scenario}:{index}' for chunk in chunks(order, done, size) for index in chunk.indices]
    assert sorted(dealt) == sorted({str(episode) for episode in order} - done)


def test_two_workers_find_what_one_process_finds(tmp_path, reference):
    assert conducted(tmp_path / 'two.jsonl', study(), jobs=2) == reference[0]


@pytest.mark.slow
def test_four_workers_find_what_one_process_finds(tmp_path, reference):
    assert conducted(tmp_path / 'four.jsonl', study(), jobs=4) == reference[0]


def kill_a_worker() -> int:
    rows = subprocess.run(['ps', '-ww', '--ppid', str(os.getpid()), '-o', 'pid=,args='], capture_output=True, text=True).stdout
    worker = next(int(row.split()[0]) for row in rows.splitlines() if 'LokyProcess' in row)
    os.kill(worker, signal.SIGKILL)
    return worker


def test_a_killed_worker_loses_no_episode(tmp_path, reference):
    killed = []

    def kill(_):
        if not killed:
            killed.append(kill_a_worker())

    assert conducted(tmp_path / 'killed.jsonl', study(), jobs=2, seen=kill) == reference[0]
    assert killed


def test_a_worker_that_dies_between_two_tasks_costs_nothing():
    with Workers(2) as workers:
        tasks = iter(range(4))

        def dealt():
            for task in tasks:
                if task == 3:
                    kill_a_worker()
                    time.sleep(1.0)  # the pool has noticed before the task is handed over
                yield task

        assert sorted(workers.each(abs, dealt())) == [(task, task) for task in range(4)]


def test_a_task_that_kills_its_worker_three_times_is_named():
    with Workers(2) as workers, pytest.raises(RunError, match='3 killed its worker 3 times'):
        list(workers.each(deadly, range(6)))


@pytest.mark.parametrize('cut', [0.3, 0.6, 0.999])
def test_a_study_that_was_cut_off_anywhere_goes_on_where_it_was(tmp_path, reference, cut):
    outcome, content = reference
    path = tmp_path / 'cut.jsonl'
    path.write_bytes(content[: int(len(content) * cut)])
    ran = []
    assert conducted(path, study(), seen=lambda episodes: ran.extend(e.id for e in episodes)) == outcome
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert sorted(line['id'] for line in lines) == sorted(episode.id for episode in outcome.episodes)
    assert 0 < len(ran) < 24


def test_a_whole_ledger_runs_nothing_again_and_a_larger_study_goes_on_from_it(tmp_path, reference):
    path = tmp_path / 'whole.jsonl'
    path.write_bytes(reference[1])
    assert conducted(path, study(), seen=lambda _: pytest.fail('ran again')) == reference[0]
    larger = conducted(path, study(episodes=28))
    assert larger.episodes[:24] == reference[0].episodes
    assert larger.verdict.n == 28


def test_the_ledger_of_another_study_isrefused_with_what_differs_and_fresh_starts_over(tmp_path, reference):
    path = tmp_path / 'other.jsonl'
    path.write_bytes(reference[1])
    other = Study(trial(seed=2, seconds=1.5, claim=CLAIM), 24)
    with pytest.raises(RunError) as caught:
        opened(path, other)
    message = str(caught.value)
    assert 'seed: 1 there, 2 here' in message
    assert 'ranges:' in message
    assert 'robot_file' not in message
    with opened(path, other, fresh=True) as ledger:
        assert not ledger.episodes


def test_two_studies_cannot_write_one_ledger(tmp_path):
    with opened(tmp_path / 'one.jsonl', study()), pytest.raises(RunError, match='another study is writing'):
        opened(tmp_path / 'one.jsonl', study())


@pytest.mark.parametrize('line', ['no json', '[1]', '{"id": "flat:0"}'])
def test_a_damaged_ledger_is_one_sentence_with_its_line(tmp_path, reference, line):
    path = tmp_path / 'damaged.jsonl'
    path.write_bytes(reference[1] + line.encode() + b'\n')
    with pytest.raises(DocumentError, match='line 26'):
        opened(path, study())


def test_an_episode_that_came_out_in_two_ways_isrefused(tmp_path, reference):
    path = tmp_path / 'twice.jsonl'
    again = json.loads(reference[1].splitlines()[-1]) | {'digest': '0'}
    path.write_bytes(reference[1] + json.dumps(again).encode() + b'\n')
    with pytest.raises(DocumentError, match='came out otherwise before'):
        opened(path, study())


def test_a_hopeless_study_ends_early_and_starts_no_more_batches(tmp_path):
    hopeless = Study(trial(seconds=1.0, claim=CLAIM, success={'tracking_m_s': 1e-6, 'fall_height': 0.999}), 300, True)
    outcome = conducted(tmp_path / 'hopeless.jsonl', hopeless)
    assert outcome.verdict.decided
    assert not outcome.verdict.holds
    assert outcome.verdict.n < 300


@pytest.mark.parametrize('address', ['localhost:8786', 'http://localhost:1', 'tcp://127.0.0.1:1'])
def test_a_scheduler_that_is_none_is_one_sentence(address):
    with pytest.raises((RunError, DependencyError), match='--scheduler'):
        Workers(scheduler=address)


@pytest.mark.slow
def test_a_dask_cluster_finds_what_one_process_finds(tmp_path, reference):
    distributed = pytest.importorskip('distributed', reason='the extra `dask` is not installed')
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        opened(tmp_path / 'dask.jsonl', study()) as ledger,
        Workers(scheduler=cluster.scheduler_address) as workers,
    ):
        assert workers.jobs == 2
        assert conduct(study(), ledger, workers) == reference[0]


def test_what_a_worker_raises_names_the_batch():
    with Workers(2) as workers, pytest.raises(RunError, match='no-such-scenario'):
        list(workers.each(partial(refuse, 'no-such-scenario'), [1]))


def test_workers_end_when_their_parent_is_killed(tmp_path):
    """Even where SIGINT is ignored, as in the background of a script."""
    code = (
        'import signal, time\n'
        'signal.signal(signal.SIGINT, signal.SIG_IGN)\n'
        'from sim2real_ros.validation.workers import Workers\n'
        'with Workers(2) as workers:\n'
        '    for task, _ in workers.each(time.sleep, [0.1, 0.2, 60, 61]):\n'
        '        print(task, flush=True)\n'
    )
    with subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        assert parent.stdout.readline()
        parent.kill()
        parent.communicate(timeout=20)  # raises where a worker still holds the pipe
