# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Misuses a control socket. usage: hostile.py HOW SOCKET SECONDS. Prints how many connections it made.
A file without imports of others, so that another user can run a copy of it."""

import random
import socket
import sys
import time

REQUEST = b'{"version":1,"id":1,"command":"stats"}\n'


def connect(path):
    """None: refused for now."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.setblocking(False)
    try:
        client.connect(path)
    except OSError:
        client.close()
        return None
    return client


def send(client, data):
    """False: the other end has closed the connection."""
    try:
        client.send(data)
    except BlockingIOError:
        pass
    except OSError:
        return False
    return True


def half(step, _):
    """Half a request, a byte at a time."""
    return REQUEST[step % 20:step % 20 + 1]


def garbage(_, random_):
    return random_.choice((b"\n", b"", b"}" * 9, b"[" * 50000 + b"\n", b'{"a":' * 9999 + b"\n", b"\0\n", b'{"version":1}\n',
                           REQUEST[:-2] + b"\n")) + random_.randbytes(random_.randrange(3000))


def huge(*_):
    """A line without end."""
    return b"x" * (1 << 20)


def greedy(*_):
    """Requests one after the other, whose answers it does not read."""
    return REQUEST * 100


def silent(*_):
    return b""


def main():
    how, path, seconds = {f.__name__: f for f in (half, garbage, huge, greedy, silent)}[sys.argv[1]], sys.argv[2], sys.argv[3]
    most = 1000
    random_ = random.Random(7)
    clients, made = [], 0
    end = time.monotonic() + float(seconds)
    step = 0
    while time.monotonic() < end:
        while len(clients) < most:
            client = connect(path)
            if client is None:
                break
            clients.append(client)
            made += 1
        still = []
        for client in clients:
            if send(client, how(step, random_)):
                still.append(client)
            else:
                client.close()
        clients = still
        step += 1
        time.sleep(0.002)
    print(made)


main()
