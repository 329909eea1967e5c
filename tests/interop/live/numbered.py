# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Numbered datagrams at a known rate: which of them arrived, how often, and the longest time without one."""

import socket
import struct
import threading
import time

from net import check, entering

NUMBER = struct.Struct("!Q")
LENGTH = 200
SO_RCVBUFFORCE = 33  # asm-generic/socket.h
BUFFER = 32 << 20
PATIENCE_S = 2


def udp_socket(net, host, version, port):
    with entering(host):
        made = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_DGRAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    except PermissionError:  # in a user namespace
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    made.bind((net.address(host, version), port))
    return made


class Receiver:
    """Takes the datagrams to a port of a host in a thread, until `end`."""

    def __init__(self, net, host, port, version=4):
        self.host, self.address = host, (net.address(host, version), port)
        self.socket = udp_socket(net, host, version, port)
        self.socket.settimeout(0.1)
        self.arrivals = {}  # number: how often
        self.last = time.monotonic()
        self.longest_gap_s = 0.0
        self.ends = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            try:
                data = self.socket.recv(2000)
            except socket.timeout:
                if self.ends:
                    return
                continue
            now = time.monotonic()
            number = NUMBER.unpack_from(data)[0]
            if self.arrivals:
                self.longest_gap_s = max(self.longest_gap_s, now - self.last)
            self.arrivals[number] = self.arrivals.get(number, 0) + 1
            self.last = now

    def end(self, sent):
        """Waits for the numbers below `sent`, until none has come for a long time: a machine with too much to do may
        keep the program waiting. What arrives later has no socket, which `udp_drops` counts."""
        began = time.monotonic()
        while len(self.arrivals) < sent and time.monotonic() - max(began, self.last) < PATIENCE_S:
            time.sleep(0.01)
        self.ends = True
        self.thread.join(10)
        check(not self.thread.is_alive(), "the datagrams do not end")
        self.socket.close()


class Sender:
    """Sends datagrams with the numbers 0, 1, 2 … in a thread, until `end`."""

    def __init__(self, net, host, receiver, source_port, rate, version=4):
        self.socket = udp_socket(net, host, version, source_port)
        self.receiver, self.rate = receiver, rate
        self.sent = 0
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        filling = bytes(LENGTH - NUMBER.size)
        began = time.monotonic()
        while not self.ends.is_set():
            due = int((time.monotonic() - began) * self.rate)
            # A host that had no processor for a while does not make up for it with a burst.
            if due - self.sent > self.rate // 50:
                began, due = time.monotonic() - self.sent / self.rate, self.sent
            while self.sent < due:
                self.socket.sendto(NUMBER.pack(self.sent) + filling, self.receiver.address)
                self.sent += 1
            time.sleep(1 / min(self.rate, 1000))

    def end(self):
        self.ends.set()
        self.thread.join(10)
        check(not self.thread.is_alive(), "the sender does not end")
        self.socket.close()


class Stream:
    """A flow of datagrams from one host to another."""

    def __init__(self, net, source, target, port, rate, version=4):
        self.name = f"{source} to {target}, IPv{version}, port {port}"
        self.receiver = Receiver(net, target, port, version)
        self.sender = Sender(net, source, self.receiver, port + 1000, rate, version)

    def end(self):
        self.sender.end()
        self.receiver.end(self.sender.sent)

    @property
    def missing(self):
        return self.sender.sent - len(self.receiver.arrivals)

    def check_none_twice(self):
        twice = {number: times for number, times in self.receiver.arrivals.items() if times > 1}
        check(not twice, self.name, "came more than once:", list(twice.items())[:10])
        check(all(number < self.sender.sent for number in self.receiver.arrivals), self.name, "other data came")


def udp_drops(host):
    """Datagrams that reached the host, but not its sockets."""
    with entering(host):
        with open(f"/proc/self/task/{threading.get_native_id()}/net/snmp") as file:
            lines = [line.split() for line in file if line.startswith("Udp:")]
        with open(f"/proc/self/task/{threading.get_native_id()}/net/snmp6") as file:
            six = dict(line.split() for line in file)
    four = dict(zip(lines[0][1:], lines[1][1:]))
    return sum(int(four[name]) + int(six.get("Udp6" + name, 0)) for name in ("InErrors", "NoPorts"))
