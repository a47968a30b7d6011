# SPDX-License-Identifier: Apache-2.0
"""Running episodes: what belongs to all of them, and one batch of them from beginning to end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sim2real_ros.contract import Contract
from sim2real_ros.errors import DocumentError, JointError, NetworkError, SignalError
from sim2real_ros.observation.needs import missing_signals
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.robot import Robot
from sim2real_ros.safety import SafetyFilter
from sim2real_ros.safety.certificate import Certificate, certify
from sim2real_ros.signals import RobotState
from sim2real_ros.sim.ground import Ground
from sim2real_ros.sim.model import build_model
from sim2real_ros.validation.controls import Controls
from sim2real_ros.validation.draws import Draws, draw
from sim2real_ros.validation.episode import Episode, EpisodeId
from sim2real_ros.validation.noise import Noise
from sim2real_ros.validation.plant import Plant, ground_of, physics_steps, standing_height
from sim2real_ros.validation.schema import ValidationFile
from sim2real_ros.validation.scoring import Scores
from sim2real_ros.validation.senses import Senses

BROKEN = 'fault network'  # an observation or action that is not finite; the policy node would stop


@dataclass(frozen=True, slots=True)
class Trial:
    """What all episodes of a study share.

    Attributes:
        level: ranges, scenarios, success.
        pose: (n,) rad, the policy's default position in robot order.
        height: m, of the base when standing in it.
    """

    level: ValidationFile
    robot: Robot
    contract: Contract
    seed: int
    certificate: Certificate
    pose: np.ndarray
    height: float
    links: int

    @classmethod
    def of(cls, level: ValidationFile, robot: Robot, contract: Contract, seed: int) -> Trial:
        """Prepare a study.

        Raises:
            JointError: the policy does not drive every joint of the robot, or one that it lacks.
            SignalError: it needs a signal that the robot does not give, or that is not simulated here.
            DocumentError: the safety filter would not accept it, or its rate is above that of the joint states.
            ModelFileError, NetworkError: it cannot be loaded.
        """
        if contract.file.rate_hz > robot.sensors.rate_hz:
            fault = f'rate_hz: {contract.file.rate_hz:g} is above the {robot.sensors.rate_hz:g} Hz of the joint states'
            raise DocumentError(contract.source, [fault])
        certificate = certify(robot)
        SafetyFilter(robot, certificate=certificate).accept(contract)  # what the safety node refuses earns no passport
        idle = [joint for joint in robot.joints if joint not in contract.joints]
        if idle:
            raise JointError(f'policy {contract.file.name} does not drive {", ".join(idle)} of robot {robot.name}')
        given = {'imu': robot.floating, 'odom': robot.floating and robot.sensors.odom}
        missing = missing_signals(contract, [name for name, there in given.items() if there])
        if missing:
            raise SignalError('validation does not simulate every signal that the policy needs: ' + '; '.join(missing))
        PolicyRunner(contract)  # what is wrong with the file shall show here, not as an episode that fails
        pose = contract.default_position[[contract.joints.index(joint) for joint in robot.joints]]
        height = standing_height(robot, pose) if robot.floating else 1.0
        return cls(level, robot, contract, seed, certificate, pose, height, build_model(robot).nbody - 1)

    def draw(self, scenario: str, indices: Sequence[int], z: np.ndarray | None = None) -> Draws:
        """Draw episodes of a scenario; see `draws.draw`."""
        return draw(self.level, scenario, indices, self.seed, self.robot, self.contract, links=self.links, z=z)


Watch = Callable[[float, Plant, Controls, np.ndarray], None]  # after each policy tick: s, plant, controls, command (B, 3)


def run(
    trial: Trial,
    scenario: str,
    indices: Sequence[int],
    *,
    z: np.ndarray | None = None,
    ground: Ground | None = None,
    threads: int = 1,
    watch: Watch | None = None,
) -> list[Episode]:
    """Run episodes of one scenario side by side; none hears of the others, so any selection gives the same results.

    Args:
        trial: what they share.
        scenario: of the level.
        indices: (B,) of the episodes.
        z: (B, width) coordinates instead of the sequence's, for a search.
        ground: of the scenario, where the caller has made it already.
        threads: of the physics.
        watch: is shown every policy tick.
    """
    ground = ground or ground_of(trial.level.scenarios[scenario])
    draws = trial.draw(scenario, indices, z)
    try:
        return _run(trial, scenario, draws, ground, threads, watch)
    except NetworkError:
        if len(indices) == 1:  # this is the one whose numbers are not finite
            return [Episode(str(EpisodeId(scenario, indices[0])), BROKEN, 0.0, -1.0, {}, draws.record(0), '')]
    half = len(indices) // 2
    parts = (slice(None, half), slice(half, None))
    return [
        episode
        for part in parts
        for episode in run(
            trial, scenario, indices[part], z=None if z is None else z[part], ground=ground, threads=threads, watch=watch
        )
    ]


def _run(trial: Trial, scenario: str, draws: Draws, ground: Ground, threads: int, watch: Watch | None) -> list[Episode]:
    level, robot = trial.level, trial.robot
    plant = Plant(robot, ground, draws, trial.pose, trial.height, threads=threads)
    noise = Noise(trial.seed, scenario, draws.indices, Senses.deviations(len(robot.joints), level.ranges))
    senses = Senses(plant, draws, level.ranges, noise)
    controls = Controls(robot, trial.contract, trial.certificate, draws, trial.pose)
    scores = Scores(level, plant, controls, trial.height)
    motors = Motors(plant, draws)
    substeps, period = physics_steps(robot), 1.0 / robot.sensors.rate_hz
    odometry = 'odom' in controls.runner.builder.needs
    command = draws.commands[:, 0]
    stood = 0  # commands so far
    lanes: np.ndarray | None = None  # that go on; None for all
    for tick in range(round(level.episode_s / period)):
        now = tick * period
        number = min(int(now / level.command_s + 1e-9), draws.commands.shape[1] - 1)
        if number != stood:
            scores.next_command(command)
            stood, command = number, draws.commands[:, number]
        state, due = senses.sample(now), controls.due()
        if odometry and due:
            state = replace(state, base_lin_vel=plant.lin_vel, base_pos=plant.base_pos.copy())
        motors.command(controls.step(_calm(state, scores.alive), command, senses.gap))
        plant.disturb(now - period, now)
        scores.see_control()
        for _ in range(substeps):
            plant.step(motors.torque(scores.alive), lanes)
            senses.note()
        if due:
            scores.see_policy(now + period, command, now - stood * level.command_s)
            if watch is not None:
                watch(now + period, plant, controls, command)
            if not scores.alive.all():
                lanes = np.flatnonzero(scores.alive)
                if not lanes.size:
                    break
    scores.next_command(command)
    return [_episode(scenario, draws, plant, scores, lane) for lane in range(len(draws.indices))]


class Motors:
    """Torque on its way to the motors, late by what was drawn."""

    def __init__(self, plant: Plant, draws: Draws) -> None:
        self._delay = np.rint(draws.values['command_delay_s'] / plant.timestep).astype(int)  # physics steps
        self._past = np.zeros((int(self._delay.max()) + 1, *plant.strength.shape))
        self._lanes, self._step, self._last = np.arange(len(self._delay)), 0, self._past[0]

    def command(self, torque: np.ndarray) -> None:
        """Take a new torque (B, n) N m; it is held until the next one."""
        self._last = torque

    def torque(self, alive: np.ndarray) -> np.ndarray:
        """Return the torque (B, n) N m of the coming physics step; none on robots that have come to their end."""
        rows = len(self._past)
        self._past[self._step % rows] = self._last
        acting = self._past[(self._step - self._delay) % rows, self._lanes] * alive[:, None]
        self._step += 1
        return acting


def _calm(state: RobotState, alive: np.ndarray) -> RobotState:
    """Return the state with robots that have come to their end at rest: their numbers must not stop the others."""
    if alive.all():
        return state
    gone = ~alive
    for values in (state.joint_pos, state.joint_vel, state.base_ang_vel, state.base_lin_vel, state.base_pos):
        if values is not None:
            values[gone] = 0.0
    state.base_quat_xyzw[gone] = (0.0, 0.0, 0.0, 1.0)
    return state


def _episode(scenario: str, draws: Draws, plant: Plant, scores: Scores, lane: int) -> Episode:
    reason, margin, figures = scores.close(lane)
    digest = hashlib.sha256(plant.digest(lane)).hexdigest()[:16]
    name = str(EpisodeId(scenario, draws.indices[lane]))
    return Episode(name, reason, float(scores.end_s[lane]), margin, figures, draws.record(lane), digest)
