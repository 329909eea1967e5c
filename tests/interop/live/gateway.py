# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway that is a host too: it masquerades with an address at which it is reached itself, by the kernel and by Penstock with the same
rules. Both must answer alike. Beside Penstock, the kernel has the addresses and the servers; its packets go through the tap `host0`.

    la: eth0 ──── lan: Penstock in gw :wan ──── eth0: lb
                               │ host0
                             kernel"""

import json

from home import CLIENT, SERVER
from net import Skip, check, sh, skip_without_tun, wait_until

RULES = """
table inet gate {
 chain before {
  type nat hook prerouting priority dstnat;
  iifname "wan" ip daddr 10.2.0.254 tcp dport 8080 dnat ip to 10.1.0.1:80
  iifname "wan" ip6 daddr fd02::fe tcp dport 8080 dnat ip6 to [fd01::1]:80
 }
 chain mine {
  type filter hook input priority filter; policy drop;
  iifname "lo" accept
  icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
  ct state established,related accept
  icmp type echo-request accept
  icmpv6 type echo-request accept
  tcp dport 22 accept
  tcp dport 23 reject with tcp reset
  udp dport 24 reject
  iifname "lan" tcp dport 2222 accept
 }
 chain own_nat {
  type nat hook output priority -100;
  ip daddr 10.2.0.9 tcp dport 5555 dnat ip to 10.2.0.2:5000
  ip6 daddr fd02::9 tcp dport 5555 dnat ip6 to [fd02::2]:5000
 }
 chain own {
  type filter hook output priority filter;
  tcp dport 25 drop
  tcp dport 26 reject with tcp reset
  tcp dport 5555 drop
 }
 chain through {
  type filter hook forward priority filter; policy drop;
  ct state established,related accept
  iifname "lan" accept
  ct status dnat accept
 }
 chain after {
  type nat hook postrouting priority srcnat;
  oifname "wan" masquerade
 }
}
"""
# What comes by the interfaces is for Penstock. The kernel answers ARP and neighbour discovery.
NOTHING_ELSE = """
table inet penstock {
 chain first {
  type filter hook prerouting priority raw;
  iifname { "lan", "wan" } icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
  iifname { "lan", "wan" } drop
 }
}
"""
GATES = {"lan": ("10.1.0.254", "fd01::fe"), "wan": ("10.2.0.254", "fd02::fe")}


def gateway(make, workers=1):
    """The hosts, the gateway's addresses, and the servers."""
    net = make(routed=True, workers=workers)
    net.host("gw", "sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0")
    for port, (ipv4, ipv6) in GATES.items():
        sh(f"ip -n gw link set {port} address {net.MACS[port]} up && ip -n gw addr add {ipv4}/24 dev {port} && "
           f"ip -n gw addr add {ipv6}/64 dev {port} nodad")
        host = "la" if port == "lan" else "lb"
        for address in net.addresses[host]:
            sh(f"ip -n gw neigh replace {address} lladdr {net.mac(host)} dev {port} nud permanent")
    # The outside knows the public address alone.
    sh("ip -n lb route del default && ip -n lb -6 route del default")
    server = net.write("server.py", SERVER)
    net.write("client.py", CLIENT)
    net.serve("la", f"python3 {server} 80", port=80)
    net.serve("lb", f"python3 {server} 5000", port=5000)
    net.serve("gw", f"python3 {server} 22", port=22)
    net.serve("gw", f"python3 {server} 2222", port=2222)
    return net


def answers_of(net):
    """What hosts say, by what they are asked."""
    said = {}

    def ask(host, address, *questions):
        for kind, port in questions:
            question = f"{'SOCK_STREAM' if kind == 'tcp' else 'SOCK_DGRAM'},{address},{port}"
            said[f"{host} {kind} {address} {port}"] = json.loads(net.host(host, f"python3 {net.path('client.py')} {question}"))[0]

    for index, version in ((0, 4), (1, 6)):
        public, gate = GATES["wan"][index], GATES["lan"][index]
        inside, outside, other = net.addresses["la"][index], net.addresses["lb"][index], ("10.2.0.9", "fd02::9")[index]
        for host, address in (("la", gate), ("la", public), ("lb", public), ("gw", outside), ("gw", inside), ("la", outside)):
            out = net.host(host, f"ping -{version} -q -c 2 -i 0.1 -W 1 {address}", check=False)
            said[f"{host} ping {address}"] = " 0% packet loss" in out
        out = net.host("lb", f"ping -{version} -c 1 -t 1 -W 1 {public}", check=False)
        said[f"lb ping {public}, TTL 1"] = " 0% packet loss" in out
        ask("lb", public, ("tcp", 22), ("udp", 22), ("tcp", 23), ("udp", 24), ("tcp", 2222), ("tcp", 8080), ("tcp", 81))
        ask("lb", inside, ("tcp", 80))
        ask("la", gate, ("tcp", 22), ("tcp", 23), ("udp", 24), ("tcp", 2222), ("tcp", 81))
        ask("la", public, ("tcp", 22), ("tcp", 2222))
        ask("la", outside, ("tcp", 5000), ("udp", 5000))
        ask("gw", outside, ("tcp", 5000), ("udp", 5000), ("tcp", 25), ("tcp", 26), ("tcp", 5001), ("udp", 5001))
        ask("gw", inside, ("tcp", 80), ("udp", 80))
        ask("gw", other, ("tcp", 5555))
    return said


def by_kernel(make):
    net = gateway(make)
    net.host("gw", "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.send_redirects=0")
    sh(f"ip netns exec gw nft -f {net.write('gate.nft', RULES)}")
    said = answers_of(net)
    net.remove()
    return said


def by_penstock(make, workers):
    net = gateway(make, workers)
    rules = net.write("gate.nft", RULES)
    sh(f"ip netns exec gw nft -f {net.write('nothing.nft', NOTHING_ELSE)}")
    net.make_link(f"ip -n gw tuntap add dev host0 mode tap {'multi_queue' if workers > 1 else ''} vnet_hdr")
    sh("ip -n gw link set host0 addrgenmode none arp off up")
    for option, index in (("", 0), ("-6", 1)):
        sh(f"ip -n gw {option} rule add pref 100 iif lo lookup 100")
        sh(f"ip -n gw {option} route add default dev host0 src {GATES['wan'][index]} table 100")
        sh(f"ip -n gw {option} route add {('10.1.0.0/24', 'fd01::/64')[index]} dev host0 src {GATES['lan'][index]} table 100")

    def firewall(hook, more=""):
        return f"  - firewall: {{rules: {rules}, hook: {hook}, host: host, connections: 1000, interfaces: {{lan: lan, wan: wan, lo: none}}{more}}}\n"

    addresses = ", addresses: {wan: 10.2.0.254 fd02::fe, lan: 10.1.0.254 fd01::fe}"
    net.more_ports = "  host: {tap: {interface: host0}}\n"
    net.start(firewall("prerouting") + firewall("output") + "  - router: {routes: kernel, neighbours: kernel, host: host, interfaces: {host0: host}}\n"
              + firewall("forward", addresses) + firewall("input", addresses) + firewall("postrouting", addresses))
    wait_until(lambda: "LOWER_UP" in sh("ip -n gw link show host0"), "the tap is not in use")
    said = answers_of(net)
    report = net.stop()
    print(net.penstock.text())
    return said, report


def follow(make, workers=1):
    skip_without_tun()
    if "nftables" not in sh("nft --version", check=False):
        raise Skip("nft is not installed")
    kernel = by_kernel(make)
    penstock, report = by_penstock(make, workers)
    different = [f"{what}:\n  kernel:   {kernel[what]}\n  Penstock: {penstock[what]}" for what in kernel if penstock[what] != kernel[what]]
    check(not different, "answers differ:\n" + "\n".join(different), json.dumps(report["functions"], indent=1))
    # And they are right.
    for index in (0, 1):
        public, gate = GATES["wan"][index], GATES["lan"][index]
        inside, outside = "10.1.0.1 fd01::1".split()[index], "10.2.0.2 fd02::2".split()[index]
        other = ("10.2.0.9", "fd02::9")[index]
        for what, answer in ((f"lb ping {public}", True), (f"lb ping {public}, TTL 1", True), (f"gw ping {outside}", True),
                             (f"lb tcp {public} 22", outside), (f"lb tcp {public} 23", "ECONNREFUSED"), (f"lb udp {public} 24", "ECONNREFUSED"),
                             (f"lb tcp {public} 2222", "silence"), (f"lb tcp {public} 8080", outside), (f"lb tcp {public} 81", "silence"),
                             (f"la tcp {gate} 2222", inside), (f"la tcp {public} 22", inside), (f"la tcp {outside} 5000", public),
                             (f"gw tcp {outside} 5000", public), (f"gw tcp {inside} 80", gate), (f"gw tcp {outside} 25", "silence"),
                             (f"gw tcp {outside} 26", "ECONNREFUSED"), (f"gw tcp {other} 5555", public)):
            check(kernel[what] == answer, what, kernel[what], "and not", answer)


SCENARIOS = {"GatewayHost": follow, "GatewayHost4": lambda make: follow(make, workers=4)}
