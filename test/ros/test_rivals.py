# SPDX-License-Identifier: Apache-2.0
"""Promises about others who command the motors: each is found and named, and nobody else is accused."""

from dataclasses import dataclass, field
from types import SimpleNamespace

from sim2real_ros.ros import rivals
from sim2real_ros.ros.rivals import Rivals, foreign_publishers, holders

OWN, TOPIC = ('safety_node', '/dog'), '/dog/effort_controller/commands'


@dataclass
class Controller:
    """The fields of controller_manager_msgs/ControllerState that matter."""

    name: str
    state: str = 'active'
    claimed_interfaces: list[str] = field(default_factory=list)


def test_the_node_itself_and_its_watchdog_are_no_rivals():
    assert foreign_publishers([OWN, ('watchdog_node', '/dog')], OWN, TOPIC) == ''


def test_a_foreign_publisher_is_named_with_its_namespace():
    text = foreign_publishers([OWN, ('teleop', '/'), ('teleop', '/lab')], OWN, TOPIC)
    assert '/teleop, /lab/teleop publishes on /dog/effort_controller/commands' in text
    assert 'killed' not in text


def test_a_second_safety_node_of_the_same_name_is_a_rival():
    """Two launches of the same robot: the most likely mistake of all."""
    text = foreign_publishers([OWN, OWN], OWN, TOPIC)
    assert '/dog/safety_node publishes' in text
    assert 'one that was killed is listed for up to 20 s' in text


def test_a_watchdog_of_another_namespace_is_a_rival():
    assert '/cat/watchdog_node' in foreign_publishers([OWN, ('watchdog_node', '/cat')], OWN, TOPIC)


def test_an_active_controller_on_our_joints_is_named():
    rival = Controller('trajectory', claimed_interfaces=['knee/position'])
    assert 'trajectory' in holders([rival], ['hip', 'knee'], TOPIC)


def test_our_own_controller_inactive_ones_and_those_of_other_joints_are_no_rivals():
    others = [
        Controller('effort_controller', claimed_interfaces=['knee/effort']),
        Controller('sleeping', 'inactive', ['knee/effort']),
        Controller('gripper', claimed_interfaces=['finger/effort']),
        Controller('broadcaster'),
    ]
    assert holders(others, ['hip', 'knee'], TOPIC) == ''


class Manager:
    """A controller manager that answers when a test says so, and the node that asks it."""

    def __init__(self):
        self.ready, self.asked = True, []

    def service_is_ready(self):
        return self.ready

    def call_async(self, _):
        return SimpleNamespace(add_done_callback=self.asked.append)

    def answer(self, *controllers):
        result = SimpleNamespace(controller=controllers)
        self.asked.pop()(SimpleNamespace(exception=lambda: None, result=lambda: result))

    def get_name(self):
        return OWN[0]

    def get_namespace(self):
        return OWN[1]

    def get_publishers_info_by_topic(self, _):
        return []


def test_a_rival_controller_is_told_when_ros2_control_answers_and_forgotten_when_it_goes_away(monkeypatch):
    manager, told = Manager(), []
    monkeypatch.setattr(rivals, '_controller_client', lambda node: node)
    monkeypatch.setattr(rivals, '_list_request', lambda: None)
    watch = Rivals(manager, TOPIC, ['knee'], told.append)
    watch.look()
    manager.answer(Controller('trajectory', claimed_interfaces=['knee/effort']))
    assert 'the controllers trajectory of ros2_control hold the same joints' in told[-1], 'at once, not at the next look'
    watch.look()
    assert 'trajectory' in told[-1], 'until there is another answer'
    manager.ready = False
    watch.look()
    assert told[-1] == ''
