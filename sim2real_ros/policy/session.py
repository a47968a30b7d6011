# SPDX-License-Identifier: Apache-2.0
"""Opening an ONNX file, and what is wrong with one that does not open."""

from __future__ import annotations

from pathlib import Path

import onnxruntime

from sim2real_ros.contract.load import read_model
from sim2real_ros.errors import ModelFileError


def session_options() -> onnxruntime.SessionOptions:
    """Return options for one thread that does not spin: a control loop shares the cores with others."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry('session.intra_op.allow_spinning', '0')
    options.add_session_config_entry('session.inter_op.allow_spinning', '0')
    options.log_severity_level = 4
    return options


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """Open an ONNX file on one thread.

    Raises:
        ModelFileError: with the reason: missing, a Git-LFS pointer, truncated, without its data file.
    """
    read_model(path)
    options = session_options()
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])
    except Exception as error:  # onnxruntime raises classes of its own that share no public base
        text = ' '.join(str(error).split())
        if 'external' in text.lower() or f'{path.name}.data' in text:
            hint = f'its weights lie in a file of their own (often {path.name}.data) that is not beside it: copy both files'
        elif 'INVALID_PROTOBUF' in text:
            hint = 'the file is truncated or not an ONNX model'
        else:
            hint = f'its graph is damaged, or asks for more than onnxruntime {onnxruntime.__version__} has'
        raise ModelFileError(f'cannot open the network {path}: {hint} (onnxruntime: {text[:200]})') from None


def read_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of an ONNX file."""
    return dict(open_session(path).get_modelmeta().custom_metadata_map)
