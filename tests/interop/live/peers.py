# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""The second gateway of tunnels.py is another implementation of ESP: Linux, or DPDK's librte_ipsec."""

import os
import struct
import subprocess
import threading

from chains import exchange
from frames import mac_bytes, raw_socket, receive
from net import Skip, check, sh, wait_until
from tunnels import INNER6, OUTER, OUTER_MACS, SAS, check_opened, gateways, start_router


def with_peer(make, start_peer, bytes_):
    """`start_peer` makes the second gateway another one, and returns what checks it in the end."""
    nets, middle = gateways(make, routed=True)
    net = nets[0]
    net.kind.set_mtu(nets[1], "lb", 1400)
    check_peer = start_peer(nets[1])
    start_router(net, 0)
    middle.wait_until_open()
    exchange(net, bytes_)
    check_opened(net.stop(), 0)
    check_peer()
    middle.check_esp_alone()


def linux(net):
    """Routes and `ip xfrm` in the second gateway's namespace."""
    ip = f"ip -n {net.gateway}"
    for sa in SAS:
        net.make_link(f"{ip} xfrm state add src {sa.source} dst {sa.target} proto esp spi {sa.spi} reqid {sa.version} "
                      f"mode tunnel replay-window 32 flag af-unspec aead 'rfc4106(gcm(aes))' 0x{sa.key}{sa.salt} 128")
    for direction, source, target, i in (("out", "lb", "la", 1), ("fwd", "la", "lb", 0), ("in", "la", "lb", 0)):
        for version in (4, 6):
            sh(f"{ip} xfrm policy add src {net.address(source, version)} dst {net.address(target, version)} "
               f"dir {direction} tmpl src {OUTER[i]} dst {OUTER[1 - i]} proto esp reqid {version} mode tunnel")
    sh("ip -n m2 link set middle type bridge_slave mcast_flood off")  # it reports its own multicast groups
    net.host(net.gateway, "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
    sh(f"{ip} link set lan address {net.MACS['lan']} && {ip} link set wan address {OUTER_MACS[1]}")
    for port, ipv4, ipv6 in (("wan", f"{OUTER[1]}/24", f"{INNER6[1]}/64"), ("lan", "10.2.0.254/24", "fd02::fe/64")):
        sh(f"{ip} addr add {ipv4} dev {port} && {ip} addr add {ipv6} dev {port} nodad")
    for version, hop in ((4, OUTER[0]), (6, INNER6[0])):
        sh(f"{ip} neigh replace {hop} lladdr {OUTER_MACS[0]} dev wan nud permanent")
        sh(f"{ip} route add {net.address('la', version)} via {hop} dev wan")
        sh(f"{ip} neigh replace {net.address('lb', version)} lladdr {net.mac('lb')} dev lan nud permanent")
    return lambda: None


class RteProcess:
    """Protects or opens the packets that it gets, one after the other, as captures on its input and output."""

    def __init__(self, program, what, sa, send):
        arguments = (f"cipher=aes-gcm key={sa.key} salt={sa.salt} spi={sa.spi} sequence={1 if what == 'protect' else 0} "
                     f"mode=tunnel source={sa.source} destination={sa.target} inner={sa.version}")
        self.process = subprocess.Popen(
            # It would keep its output in a buffer.
            ["setpriv", "--pdeathsig", "KILL", "stdbuf", "-o0", program, what, "-", "-", *arguments.split()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"})
        self.send, self.given, self.returned = send, 0, 0
        self.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))  # raw IP
        check(len(self.process.stdout.read(24)) == 24, "rte_ipsec_peer does not start")
        threading.Thread(target=self.forward, daemon=True).start()

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def give(self, packet):
        self.given += 1
        self.write(struct.pack("=IIII", 0, 0, len(packet), len(packet)) + packet)

    def forward(self):
        while header := self.process.stdout.read(16):
            self.send(self.process.stdout.read(struct.unpack("=IIII", header)[2]))
            self.returned += 1

    def check_all_returned(self):
        wait_until(lambda: self.returned == self.given, f"rte_ipsec_peer has refused some of {self.given} packets", 5)
        check(self.given > 500, "rte_ipsec_peer got", self.given, "packets")


def rte_ipsec(net):
    """A process for each SA, and this one takes the packets to it."""
    program = os.path.join(os.path.dirname(net.program), "tests", "rte_ipsec_peer")
    if not os.path.exists(program):
        raise Skip("built without DPDK: no rte_ipsec_peer")
    net.offloads(False, ["lb"])
    lan, wan = (raw_socket(net.gateway, interface=port) for port in ("lan", "wan"))

    def to_lan(packet):
        type_ = b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"
        lan.send(mac_bytes(net.mac("lb")) + mac_bytes(net.MACS["lan"]) + type_ + packet)

    def to_wan(packet):
        wan.send(mac_bytes(OUTER_MACS[0]) + mac_bytes(OUTER_MACS[1]) + b"\x08\x00" + packet)

    opening = {sa.spi: RteProcess(program, "open", sa, to_lan) for sa in SAS if sa.target == OUTER[1]}
    protecting = {sa.version: RteProcess(program, "protect", sa, to_wan) for sa in SAS if sa.source == OUTER[1]}

    def from_wan(packet):
        opening[struct.unpack("!I", packet[20:24])[0]].give(packet)

    def from_lan(packet):
        protecting[packet[0] >> 4].give(packet)

    def take(raw, mac, give):
        raw.settimeout(None)
        while True:
            frame = receive(raw)
            if frame[:6] == mac_bytes(mac):
                give(frame[14:])

    for arguments in ((wan, OUTER_MACS[1], from_wan), (lan, net.MACS["lan"], from_lan)):
        threading.Thread(target=take, args=arguments, daemon=True).start()

    def check_peer():
        for process in (*opening.values(), *protecting.values()):
            process.check_all_returned()
    return check_peer


SCENARIOS = {
    "EspToLinux": lambda make: with_peer(make, linux, "15M"),
    "EspToRteIpsec": lambda make: with_peer(make, rte_ipsec, "2M"),
}
