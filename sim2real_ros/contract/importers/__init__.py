# SPDX-License-Identifier: Apache-2.0
"""Importers: from the files of another trainer to a contract, with every assumption written down.

One file per format, each named by one line in `formats.FORMATS`. Such a module has three names:

    NEEDS = 'a folder with deploy.yaml in params/ and policy.onnx in exported/'      # for messages

    def detect(source: Path) -> float: ...
        # 0: not this format; 1: certainly. Looks at names and keys, never raises, reads no more than it must.

    def read(source: Path, hints: Hints) -> Imported: ...
        # The whole work. Raises DocumentError with every fault of the source.

`source` is what the user gave: a folder or a file. `hints` is what he said beside it (robot, joint names, network, the fields
that he sets), and a workspace to unpack and convert in. `Imported` is the draft of a contract: a plain dict of our schema. Put
into it what the source states; for everything else call `imported.assume(path, value, why)`, which sets the field and records
an assumption. Leave out what nobody can know: the schema refuses the draft then, and the message tells the user to `--set` it.
`schema`, `model` and `assumptions` are filled in by the framework.

    imported = Imported({'name': 'walk', 'robot': hints.robot or 'g1', ...}, network)
    imported.assume('phase.period_s', 0.8, 'deploy_mujoco.py, line 97; the YAML does not say it')
    imported.notes.append('...')                             # what a reader should know; printed and kept in the provenance

Shared parts: `draft.py` (Hints, Imported, paths into a contract), `sources.py` (finding files), `keys.py` (keys with all faults
in one message), `inert_yaml.py` (YAML whose Python tags run nothing), `network.py` (tensors, recurrent pairs, sidecars,
copying), `tables.py` (lists in some joint order to tables by name), `parts.py` (actions of a tensor, velocity command, clock),
`importer.py` (`import_policy`, the order of events).
"""

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.importer import import_policy

__all__ = ['Hints', 'Imported', 'import_policy']
