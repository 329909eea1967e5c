# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Every packet that an interface has sent to Penstock is in its report: it came in, or it is counted as lost."""

import random
import signal
import struct
import time

from frames import NOBODY, ethernet, ipv4, raw_socket, udp
from net import check, lost, received_by


def flood_frames(net, flows=64, length=900):
    head = ethernet(net, "la", to=NOBODY) + b"\x08\x00"
    return [head + ipv4(17, udp(bytes(length), source_port=5000 + i)) for i in range(flows)]


def send_all(sender, frames, count):
    sent = 0
    for i in range(count):
        try:
            sender.send(frames[i % len(frames)])
            sent += 1
        except OSError:  # the interface's queue is full
            pass
    return sent


def check_sums(net, report, sent, delivered):
    came = received_by(report, "lan")
    dropped = lost(report, "lan")
    check(came + dropped == sent or not net.kind.counts_losses and came + dropped < sent, "sent", sent, "received", came,
          "lost", report["ports"]["lan"]["lost"])
    packets = report["packets"]
    check(packets["in"] == packets["forwarded"] + packets["dropped"], packets)
    check(packets["forwarded"] == report["ports"]["wan"]["out"]["packets"], report["ports"]["wan"])
    check(packets["forwarded"] == delivered, "forwarded", packets["forwarded"], "delivered", delivered,
          report["ports"]["wan"], report["dropped_by_chain"])
    return came, dropped


def flood(make, workers, stops):
    """More than Penstock can take, with little memory; `stops`: it does not run for a while."""
    net = make(workers=workers, ipv6=False)
    net.port_parameters = net.kind.little_memory
    net.start(run=", queue.bytes: 64KiB, batch.bytes: 64KiB, batch.packets: 16")
    frames, sender = flood_frames(net), raw_socket("la")
    before, delivered_before = net.sent("la"), net.received("lb")
    send_all(sender, frames, 5000)
    if stops:
        net.penstock.process.send_signal(signal.SIGSTOP)
        send_all(sender, frames, 8000)
        net.penstock.process.send_signal(signal.SIGCONT)
        send_all(sender, frames, 5000)
    time.sleep(0.5)
    sent, delivered = net.sent("la") - before, net.received("lb") - delivered_before
    check(sent > 1000, "sent", sent)
    _, dropped = check_sums(net, net.stop(), sent, delivered)
    if stops and net.kind.little_memory:  # a TAP device's queue drops before it counts
        check(dropped > 0, "nothing was lost: the test does not reach the limit")


def ends_under_load(make, workers):
    """Packets that wait in the kernel's ring when the run ends are counted too."""
    net = make(workers=workers, ipv6=False)
    net.start()
    frames, sender = flood_frames(net), raw_socket("la")
    before, delivered_before = net.sent("la"), net.received("lb")
    send_all(sender, frames, 100)
    net.penstock.process.send_signal(signal.SIGSTOP)
    send_all(sender, frames, 6000)
    net.penstock.process.send_signal(signal.SIGINT)
    net.penstock.process.send_signal(signal.SIGCONT)
    net.penstock.process.wait(20)
    sent, delivered = net.sent("la") - before, net.received("lb") - delivered_before
    check_sums(net, net.stop(), sent, delivered)


def garbage(make, workers):
    """Frames, and what is to be done with them, by chance: the kernel refuses some, and Penstock some."""
    net = make(workers=workers, ipv6=False)
    net.start()
    random_ = random.Random(20261)
    sender = raw_socket("la", with_header=True)
    head = ethernet(net, "la", to=NOBODY) + b"\x08\x00"
    before = net.sent("la")
    accepted = 0
    for _ in range(20000):
        protocol = random_.choice((6, 17))
        payload = random_.randbytes(random_.choice((0, 8, 20, 60, 1400, 9000)))
        frame = bytearray(head + ipv4(protocol, payload))
        for _ in range(random_.randrange(4)):
            frame[random_.randrange(12, len(frame))] = random_.randrange(256)
        kind = random_.choice((0, 0x01, 0x81, 4, 5, random_.randrange(256)))
        start = random_.choice((34, 34, 54, random_.randrange(100)))
        offset = random_.choice((6, 16, random_.randrange(40)))
        try:
            sender.send(struct.pack("=BBHHHH", random_.choice((0, 1, 3)), kind, 54, random_.choice((1, 100, 1448)), start,
                                    offset) + frame)
            accepted += 1
        except OSError:
            pass
    check(accepted > 1000, "the kernel refuses everything:", accepted)
    time.sleep(0.3)
    sent = net.sent("la") - before
    check(" 0% packet loss" in net.ping(), "pings are lost after garbage")
    report = net.stop()
    counts = report["ports"]["lan"]
    came = received_by(report, "lan") - 5 - counts["events"]["segments"] + counts["events"]["frames_split"]
    check(came + lost(report, "lan") == sent, "sent", sent, "came", came, counts)


def refusals(make):
    """Frames longer than the MTU of the output are refused and counted."""
    net = make(ipv6=False, mtu=3000)
    net.start()
    if net.kind.kind == "tap":
        net.host("lb", "ip link set eth0 mtu 1000")
    else:
        net.host("gw", "ip link set wan mtu 1000")
    time.sleep(0.2)
    sender = raw_socket("la")
    delivered_before = net.received("lb")
    head = ethernet(net, "la") + b"\x08\x00"
    for length in (972, 973, 974, 1500, 2900):  # 28 bytes of headers
        sender.send(head + ipv4(17, udp(bytes(length))))
    time.sleep(0.2)
    delivered = net.received("lb") - delivered_before
    report = net.stop()
    check(report["dropped_by_chain"]["port_refused"] == 5 - delivered, report["dropped_by_chain"], delivered)
    check(report["ports"]["wan"]["events"]["refused_too_long"] == 5 - delivered, report["ports"]["wan"])
    check(delivered in (1, 2, 3), "delivered", delivered)  # tap allows for a tag


SCENARIOS = {
    "Flood1": lambda make: flood(make, 1, False),
    "Flood2": lambda make: flood(make, 2, False),
    "FloodOfAStoppedProgram1": lambda make: flood(make, 1, True),
    "FloodOfAStoppedProgram2": lambda make: flood(make, 2, True),
    "EndsUnderLoad1": lambda make: ends_under_load(make, 1),
    "EndsUnderLoad2": lambda make: ends_under_load(make, 2),
    "Garbage1": lambda make: garbage(make, 1),
    "Garbage2": lambda make: garbage(make, 2),
    "Refusals": refusals,
}
