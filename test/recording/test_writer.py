# SPDX-License-Identifier: Apache-2.0
"""Promises of the writer: what ROS 2 needs to read and play the recording is in it."""

import sys

import pytest
import yaml
from recordings import TYPES, message
from rosbags.interfaces import MessageDefinitionFormat, Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import Reader

from sim2real_ros.errors import DependencyError, OutputError
from sim2real_ros.recording.topics import TOPICS
from sim2real_ros.recording.writer import BagWriter

LATCHED = Qos(
    QosHistory.KEEP_LAST, 1, QosReliability.RELIABLE, QosDurability.TRANSIENT_LOCAL, QosTime(9223372036, 854775807),
    QosTime(9223372036, 854775807), QosLiveliness.AUTOMATIC, QosTime(9223372036, 854775807), False,
)  # fmt: skip
KIND = 'std_msgs/msg/String'


@pytest.fixture
def folder(tmp_path):
    with BagWriter(tmp_path / 'walk') as writer:
        writer.announce('/safety/mode', KIND, [LATCHED])
        for stamp in (1_000, 3_000, 2_000):
            writer.write('/safety/mode', KIND, stamp, bytes(TYPES.serialize_cdr(message(KIND, data=f'{stamp}')[1], KIND)))
        assert writer.count == 3
    return tmp_path / 'walk'


def test_metadata_say_what_ros2_bag_info_shows(folder):
    told = yaml.safe_load((folder / 'metadata.yaml').read_text())['rosbag2_bagfile_information']
    assert (told['storage_identifier'], told['message_count'], told['relative_file_paths']) == ('mcap', 3, ['walk.mcap'])
    assert told['starting_time']['nanoseconds_since_epoch'] == 1_000
    assert told['duration']['nanoseconds'] == 2_000
    (topic,) = told['topics_with_message_count']
    assert topic['topic_metadata']['name'] == '/safety/mode'
    assert topic['topic_metadata']['type_description_hash'].startswith('RIHS01_')
    (profile,) = yaml.safe_load(topic['topic_metadata']['offered_qos_profiles'])
    assert (profile['durability'], profile['reliability'], profile['depth']) == (1, 1, 1)


def test_the_file_alone_has_the_definitions_the_profiles_and_the_order_of_time(folder):
    with Reader(folder / 'walk.mcap') as reader:
        (connection,) = reader.connections
        assert connection.msgdef.format is MessageDefinitionFormat.MSG
        assert connection.msgdef.data.strip() == 'string data'
        assert connection.ext.offered_qos_profiles == [LATCHED]
        assert [stamp for _, stamp, _ in reader.messages()] == [1_000, 2_000, 3_000]


def test_every_recorded_topic_has_a_type_that_the_writer_knows():
    assert {kind for topic in TOPICS for kind in topic.types} <= TYPES.types.keys()


def test_a_folder_that_exists_is_refused_and_left_alone(folder):
    with pytest.raises(OutputError, match='walk exists already'):
        BagWriter(folder)
    assert (folder / 'metadata.yaml').is_file()


def test_without_rosbags_nothing_is_made_and_the_command_that_installs_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'rosbags.rosbag2', None)
    with pytest.raises(DependencyError, match=r'pip install "sim2real_ros\[record\]"'):
        BagWriter(tmp_path / 'walk')
    assert not (tmp_path / 'walk').exists()
