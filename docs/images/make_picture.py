# SPDX-License-Identifier: Apache-2.0
"""Render the shipped Go2 walking: MUJOCO_GL=osmesa (or egl) python docs/images/make_picture.py; needs `sim`, Pillow."""

from pathlib import Path

import mujoco
import numpy as np
from PIL import Image

from sim2real_ros.contract import load_contract
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.robot import load_robot
from sim2real_ros.safety import SafetyFilter
from sim2real_ros.safety.modes import Event
from sim2real_ros.sim.lockstep import Lockstep
from sim2real_ros.sim.world import World

FRAMES, FRAME_S = 50, 0.06  # of the animation, whose last line repeats it in ms: six gait periods
SIZE, SMALL = (1280, 720), (480, 270)  # pixels of the picture and of the animation
LIMBS = {'hip': ('thigh', 0.03), 'thigh': ('calf', 0.022), 'calf': ('foot', 0.015)}  # far end, radius in m
COLOURS = {'hip': (0.20, 0.23, 0.28), 'thigh': (1.0, 0.62, 0.15), 'calf': (0.62, 0.66, 0.72), 'foot': (0.10, 0.10, 0.11)}
TRUNK, FLOOR, LINE = (0.26, 0.36, 0.50), (0.93, 0.94, 0.95), (0.62, 0.67, 0.73)
BOX, CAPSULE = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CAPSULE

robot = load_robot('go2')
loop = Lockstep(World(robot), SafetyFilter(robot), PolicyRunner(load_contract('go2_velocity')))
world, model, data = loop.world, loop.world.model, loop.world.data


def paint() -> None:
    """Set colours and light; the physics stays as it is."""
    for i in range(model.ngeom):
        part = model.body(model.geom_bodyid[i]).name.partition('_')[2]
        model.geom_rgba[i, :3] = FLOOR if model.geom(i).name == 'floor' else COLOURS.get(part, TRUNK)
        model.geom_rgba[i, 3] = part not in ('thigh', 'calf')  # drawn as limbs instead, without gaps
    model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:], model.light_diffuse[:] = 0.5, 0.25, 0.35
    model.vis.global_.offwidth, model.vis.global_.offheight = SIZE
    model.vis.quality.shadowsize, model.vis.map.shadowclip = 8192, 7.0


def draw(scene: mujoco.MjvScene, kind: mujoco.mjtGeom, size: list, place: np.ndarray, colour: tuple) -> mujoco.MjvGeom:
    """Add a shape to the scene alone."""
    geom, scene.ngeom = scene.geoms[scene.ngeom], scene.ngeom + 1
    mujoco.mjv_initGeom(geom, kind, np.array(size), place, np.eye(3).ravel(), np.array([*colour, 1], np.float32))
    return geom


def decorate(scene: mujoco.MjvScene, x: float, y: float) -> None:
    """Draw lines on the floor around a place in m, and limbs from joint to joint."""
    for k in np.arange(-20, 21) * 0.25:
        draw(scene, BOX, [0.002, 5.0, 1e-4], np.array([round(4 * x) / 4 + k, y, 5e-4]), LINE)
        draw(scene, BOX, [5.0, 0.002, 1e-4], np.array([x, round(4 * y) / 4 + k, 5e-4]), LINE)
    for leg, (part, (end, radius)) in ((leg, limb) for leg in ('FL', 'FR', 'RL', 'RR') for limb in LIMBS.items()):
        near, far = data.body(f'{leg}_{part}').xpos, data.body(f'{leg}_{end}').xpos
        mujoco.mjv_connector(draw(scene, CAPSULE, [0, 0, 0], near, COLOURS[part]), CAPSULE, radius, near, far)


loop.tick()
for event, seconds in ((Event.DAMP, 1.5), (Event.POSE, 3.0), (Event.ACTIVATE, 0.5)):
    assert loop.safety.request(event) is None
    loop.run(seconds)
loop.command[:] = 0.8, 0.0, 0.0  # m/s, m/s, rad/s
loop.run(2.5)
paint()
images, lifted, camera = [], [], mujoco.MjvCamera()
camera.azimuth, camera.elevation, camera.distance = 140, -24, 0.95
with mujoco.Renderer(model, SIZE[1], SIZE[0]) as renderer:
    for _ in range(FRAMES):
        x, y, _z = world.base_position()
        camera.lookat[:], data.light_xpos[:] = (x + 0.03, y, 0.16), (x - 0.2, y - 0.1, 3)
        renderer.update_scene(data, camera)
        decorate(renderer.scene, x, y)
        images.append(Image.fromarray(renderer.render()))
        lifted.append(np.sort(world.foot_heights())[2])  # m, the lower of the two feet in the air
        loop.run(FRAME_S)
images[int(np.argmax(lifted))].quantize(200).save(Path(__file__).with_name('go2_walking.png'), optimize=True)
first, *rest = [image.resize(SMALL).quantize(32) for image in images]
first.save(Path(__file__).with_suffix('.gif').with_stem('go2_walking'), save_all=True, append_images=rest, duration=60, loop=0)
