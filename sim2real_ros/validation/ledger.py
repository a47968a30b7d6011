# SPDX-License-Identifier: Apache-2.0
"""`Ledger`: the episodes of a study in a file that only grows, so that an interrupted study goes on where it was.

JSON lines: first what the episodes follow from, then one line per episode, in the order in which batches came to their
end. A line that was cut off by a crash is taken away; the episode runs again and comes out the same.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from sim2real_ros.errors import DocumentError, NotFoundError, OutputError, RunError
from sim2real_ros.validation.episode import Episode, EpisodeId
from sim2real_ros.validation.fingerprint import differences

SCHEMA = 1
EPISODE = TypeAdapter(with_config(ConfigDict(extra='forbid', allow_inf_nan=False))(Episode))
REMEDY = 'start over with --fresh, or move the file away'


class Ledger:
    """An open ledger; no two processes can have the same one open.

    Attributes:
        path: of the file.
        episodes: that are in it, by id.
        terms: of the verdict of the study that began it.
    """

    def __init__(self, path: Path, header: dict[str, str], terms: str = '', *, fresh: bool = False) -> None:
        """Open or begin a ledger.

        Args:
            path: `.jsonl`; its folder is made.
            header: fingerprint of the study.
            terms: of its verdict; kept where it begins the ledger.
            fresh: forget what is in it.

        Raises:
            OutputError: it cannot be written.
            RunError: another study is writing it, or it belongs to another study; the message says what differs.
            DocumentError: it is damaged.
        """
        self.path, self.episodes, self.terms = path, dict[str, Episode](), terms
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = path.open('a+b')
        except OSError as error:
            raise OutputError(f'cannot write the ledger {path}: {error.strerror}') from None
        try:
            self._begin(header, fresh)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def append(self, episodes: Sequence[Episode]) -> None:
        """Write episodes down, all of them to the disk before this returns.

        Raises:
            OutputError: the disk is full.
        """
        new = [episode for episode in episodes if episode.id not in self.episodes]
        self._write([episode.document() for episode in new])
        self.episodes.update((episode.id, episode) for episode in new)

    def _begin(self, header: dict[str, str], fresh: bool) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f'another study is writing {self.path}: wait for its end') from None
        if fresh:
            self._file.truncate(0)
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b'\n') + 1]
        if len(whole) < len(content):
            self._file.truncate(len(whole))  # cut off in the middle of a line
        if not whole:
            self._write([{'schema': SCHEMA, 'study': header, 'terms': self.terms}])
            return
        first, *lines = whole.splitlines()
        document = _object(first)
        study = document.get('study')
        if not isinstance(study, dict) or document.get('schema') != SCHEMA:
            raise DocumentError(str(self.path), [f'line 1: is not the header of a ledger; {REMEDY}'])
        different = differences(study, header)
        if different:
            listed = '\n'.join(f'  - {line}' for line in different)
            raise RunError(f'{self.path} holds the episodes of another study; {REMEDY}\n{listed}')
        self.terms = str(document.get('terms', ''))
        for number, line in enumerate(lines, 2):
            self._take(number, line)

    def _take(self, number: int, line: bytes) -> None:
        try:
            episode = EPISODE.validate_json(line, strict=True)
            EpisodeId.parse(episode.id)
        except (ValidationError, NotFoundError):
            raise DocumentError(str(self.path), [f'line {number}: is no episode; {REMEDY}']) from None
        if self.episodes.setdefault(episode.id, episode) != episode:
            raise DocumentError(str(self.path), [f'line {number}: {episode.id} came out otherwise before; {REMEDY}'])

    def _write(self, documents: Sequence[dict[str, Any]]) -> None:
        try:
            self._file.write(b''.join(json.dumps(document).encode() + b'\n' for document in documents))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise OutputError(f'cannot write the ledger {self.path}: {error.strerror}') from None


def _object(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line; an empty one where it holds none."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
