# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Two of strongSwan's daemons negotiate the SAs, and replace them every other second:

    la: eth0 ──── lan: Penstock in gw :wan ════ eth0: lb
                          charon                charon

In gw, charon speaks IKE alone, and `penstock ike` gives Penstock the SAs that its log has. In lb, charon carries ESP too
(kernel-libipsec), so no kernel needs ESP. la's network is 10.1.0.0/24, lb's 10.99.0.0/24; and the same with IPv6.

And policies of the kernel."""

import os
import re
import shutil
import signal
import time

from control import Operator
from net import Background, Skip, check, lost, sh, wait_until
from numbered import Stream, udp_drops

CHARON = "/usr/lib/ipsec/charon"
LIBIPSEC = "/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so"
PLUGINS = "random nonce aes sha1 sha2 hmac gcm ctr kdf openssl pem pkcs1 kernel-libipsec kernel-netlink socket-default vici"
OUTER = {4: {"gw": "10.2.0.254", "lb": "10.2.0.2"}, 6: {"gw": "fd02::fe", "lb": "fd02::2"}}
NETWORKS = {"gw": ("10.1.0.0/24", "fd01::/64"), "lb": ("10.99.0.0/24", "fd99::/64")}
INNER = ("10.99.0.1", "fd99::1")  # lb's addresses in its network
REQID = 7
RATE = 500
REKEYS = 2
SEND_DELAY_MS = 1200  # a reload takes longer on a machine with much else to do


class Charon:
    """The daemon in a host's namespace."""

    def __init__(self, net, host, outer, proposal, rekey_s, extra, log):
        self.net, self.host, self.log = net, host, log
        peer = "lb" if host == "gw" else "gw"
        self.directory = net.path(f"charon-{host}")
        os.makedirs(f"{self.directory}/run")
        self.write("strongswan.conf", f"""charon {{
  load = {PLUGINS}
  {extra}
  delete_rekeyed_delay = 1
  filelog {{ log {{
    path = {log}
    default = 1
    chd = 4
    flush_line = yes
  }} }}
  plugins {{ vici {{ socket = unix://{self.directory}/vici }} }}
}}
""")
        self.write("swanctl.conf", f"""connections {{ site {{
  version = 2
  local_addrs = {OUTER[outer][host]}
  remote_addrs = {OUTER[outer][peer]}
  proposals = aes128-sha256-ecp256
  mobike = no
  local {{
    auth = psk
    id = {host}
  }}
  remote {{
    auth = psk
    id = {peer}
  }}
  children {{ net {{
    local_ts = {",".join(NETWORKS[host])}
    remote_ts = {",".join(NETWORKS[peer])}
    esp_proposals = {proposal}
    rekey_time = {rekey_s}s
    life_time = 1h
    rand_time = 0
  }} }}
}} }}
secrets {{ ike-1 {{
  id = {peer}
  secret = "of this test alone"
}} }}
""")
        # Its process number is in /run, which both would share.
        self.daemon = Background(host, f"unshare -m sh -c 'mount --bind {self.directory}/run /run && "
                                       f"STRONGSWAN_CONF={self.directory}/strongswan.conf exec {CHARON}'",
                                 net.path(f"charon-{host}.out"))
        net.background.append(self.daemon)
        wait_until(lambda: os.path.exists(f"{self.directory}/vici"), f"charon does not start: {self.daemon.text()}")
        self.swanctl(f"--load-all --file {self.directory}/swanctl.conf")

    def write(self, name, text):
        with open(f"{self.directory}/{name}", "w") as file:
            file.write(text)

    def swanctl(self, command):
        return self.net.host(self.host, f"env STRONGSWAN_CONF={self.directory}/strongswan.conf swanctl {command} "
                                        f"--uri unix://{self.directory}/vici")

    def rekeys(self):
        """CHILD_SAs after the first one that have taken over."""
        with open(self.log, errors="replace") as file:
            return sum("outbound CHILD_SA net{" in line and "established" in line for line in file)

    def end(self):
        self.daemon.end(signal.SIGTERM)


def policy(outer):
    """What goes to lb's network leaves in the tunnel, what comes from it is accepted from there alone."""
    text = ""
    for version in (0, 1):
        for direction, source, target, (a, b) in (("out", "gw", "lb", ("gw", "lb")), ("fwd", "lb", "gw", ("lb", "gw"))):
            text += (f"src {NETWORKS[source][version]} dst {NETWORKS[target][version]}\n"
                     f"\tdir {direction} priority 1 ptype main\n"
                     f"\ttmpl src {OUTER[outer][a]} dst {OUTER[outer][b]}\n"
                     f"\t\tproto esp reqid {REQID} mode tunnel\n")
        text += (f"src {NETWORKS['lb'][version]} dst {NETWORKS['gw'][version]}\n"
                 f"\tdir out priority 2 ptype main\n")  # opened
    return text


def gateway_of(make):
    for file in (CHARON, LIBIPSEC, "/usr/sbin/swanctl", "/usr/lib/ipsec/plugins/libstrongswan-openssl.so"):
        if not os.path.exists(file):
            raise Skip(f"strongSwan is not installed: there is no {file}")
    if not os.path.exists("/dev/net/tun"):
        raise Skip("charon's kernel-libipsec needs /dev/net/tun")
    net = make(routed=True)
    net.host("gw", "sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0")
    for host, port, gates, addresses in (("la", "lan", ("10.1.0.254", "fd01::fe"), ("10.1.0.1", "fd01::1")),
                                         ("lb", "wan", ("10.2.0.254", "fd02::fe"), ("10.2.0.2", "fd02::2"))):
        sh(f"ip -n gw link set {port} down && ip -n gw link set {port} addrgenmode eui64 up")
        for gate, address, bits in zip(gates, addresses, (24, 64)):
            sh(f"ip -n gw addr add {gate}/{bits} dev {port} {'nodad' if ':' in gate else ''}")
            sh(f"ip -n {host} neigh del {gate} dev eth0", check=False)
    for inner, network, hop in zip(INNER, NETWORKS["lb"], ("10.2.0.2", "fd02::2")):
        sh(f"ip -n lb addr add {inner} dev lo")
        sh(f"ip -n gw route add {network} via {hop}")
    # The kernel's charon gets IKE alone (docs/ike.md).
    if shutil.which("nft") is None:
        raise Skip("nft is not installed")
    net.host("gw", "nft 'add table inet penstock; add chain inet penstock input { type filter hook input priority 0; }; "
                   "add rule inet penstock input udp dport 4500 @th,64,32 != 0 counter drop'")
    net.addresses["lb"] = INNER
    return net


def reloads_were_slow(log, ike):
    """Packets of a new SA are dropped if it comes before its reload is done, which send_delay leaves time for."""
    took = [float(seconds) for seconds in re.findall(r"in use after ([0-9.]+) s", log)]
    return "waiting for an answer" in ike or max(took) > SEND_DELAY_MS / 2000


def rekeys_without_loss(make, outer, proposal, initiator):
    net = gateway_of(make)
    os.chmod(net.directory, 0o700)
    operator = Operator(net)
    log = net.path("charon-gw.log")
    net.write("policy", policy(outer))
    os.mkdir("/run/numbers", 0o700)

    def follow(output):
        follower = Background("gw", f"{net.program} ike --charon-log {log} --child net={REQID} "
                                    f"--state {net.path('state')} --socket {operator.socket}", net.path(output))
        net.background.append(follower)
        return follower

    ike = follow("ike.log")
    wait_until(lambda: os.path.exists(net.path("state")), f"no state file: {ike.text()}")
    common = "state: state, policy: policy, state_dir: /run/numbers, sas_come_later: true"
    net.start(f"  - ipsec: {{{common}, direction: in}}\n"
              "  - router: {routes: kernel, neighbours: kernel}\n"
              f"  - ipsec: {{{common}}}\n", outputs=f", control: {operator.socket}")
    operator.wait_until_running()
    check("100% packet loss" in net.host("la", f"ping -c 2 -i 0.2 -W 0.3 {INNER[0]}", check=False), "in the clear")
    daemons = {"gw": Charon(net, "gw", outer, proposal, 2 if initiator == "gw" else 3600,
                            f"install_routes = no\n  send_delay = {SEND_DELAY_MS}", log),
               "lb": Charon(net, "lb", outer, proposal, 2 if initiator == "lb" else 3600, "", net.path("charon-lb.log"))}
    daemons["gw"].swanctl("--initiate --child net")
    for version in (4, 6):
        wait_until(lambda: " 0% packet loss" in net.host("la", f"ping -{version} -c 1 -W 0.3 {net.address('lb', version)}",
                                                         check=False), f"IPv{version} does not pass: {ike.text()}")
    streams = [Stream(net, *pair, port, RATE, version) for version, first in ((4, 7000), (6, 7100))
               for port, pair in ((first, ("la", "lb")), (first + 1, ("lb", "la")))]
    before, dropped_before = daemons["gw"].rekeys(), udp_drops("lb")
    check(ike.end() == 0, "penstock ike", ike.text())
    ike = follow("ike-again.log")  # it finds the SAs in the log
    net.iperf("", 4, "5M")
    net.iperf("-R", 6, "5M")
    wait_until(lambda: daemons["gw"].rekeys() >= before + REKEYS, "the SAs are not replaced")
    time.sleep(0.3)
    for stream in streams:
        stream.end()
    state = sh(f"cat {net.path('state')}")
    keys = {word[2:] for word in state.split() if word.startswith("0x") and len(word) > 20}
    check(2 <= len(keys) and os.stat(net.path("state")).st_mode & 0o777 == 0o600, "state file")
    # What was replaced before the last time has gone.
    wait_until(lambda: int(sh(f"grep -c 'proto esp' {net.path('state')}")) <= 2 * REKEYS, "old SAs stay")
    dropped = udp_drops("lb") - dropped_before
    report = net.stop()
    ike.end()
    for daemon in daemons.values():
        daemon.end()
    reasons = [function["dropped"]["reasons"] for function in report["functions"]]
    print(f"{daemons['gw'].rekeys()} rekeys, {dropped} dropped by lb's sockets,", reasons, {name: lost(report, name) for name in report["ports"]}, ike.text())
    for stream in streams:
        stream.check_none_twice()
    if reloads_were_slow(net.penstock.text(), ike.text()) and any(stream.missing for stream in streams):
        raise Skip("the machine is too busy for reloads within send_delay")
    for stream in streams:
        # What charon's socket in lb had no room for, while TCP sends a lot, is not lost by Penstock or a rekey.
        may_miss = dropped if "to lb" in stream.name else 0
        check(stream.sender.sent > 1000 and stream.missing <= may_miss, stream.name, "lost", stream.missing, "of",
              stream.sender.sent, "at most", may_miss)
    check(reasons[0].get("wrong_spi", 0) == 0, "packets of SAs that were not there", reasons[0])
    check(reasons[2].get("no_sa", 0) >= 2, "before there were SAs, nothing was dropped", reasons[2])
    for text in (ike.text(), net.penstock.text(), sh(f"cat {net.report_path}")):
        check(not any(key.lower() in text.lower() for key in keys), "a key in an output")


def put_policy(version, rest):
    """In place of the last one, except for one of a protocol."""
    source, target = (("10.1.0.0/24", "10.2.0.0/24"), ("fd01::/64", "fd02::/64"))[version == 6]
    sh(f"ip -n gw xfrm policy delete dir out src {source} dst {target}", check=False)
    sh(f"ip -n gw xfrm policy add dir out src {source} dst {target} priority 5 {rest}"
       if not rest.startswith("proto") else
       f"ip -n gw xfrm policy add dir out src {source} dst {target} {rest} priority 4")


def follows_policies(make):
    """Policies of the gateway's kernel, which come and go. It needs no ESP for that."""
    net = make(routed=True)
    os.chmod(net.directory, 0o700)
    if "Operation not supported" in sh("ip -n gw xfrm policy", check=False):
        raise Skip("this kernel has no XFRM")
    for direction in ("out", "fwd"):  # of other packets, so that there are some
        sh(f"ip -n gw xfrm policy add dir {direction} src 203.0.113.0/24 dst 203.0.113.0/24 priority 9")
    operator = Operator(net)
    ike = Background("gw", f"{net.program} ike --kernel --state {net.path('state')} --policy {net.path('policy')} "
                           f"--socket {operator.socket}", net.path("ike.log"))
    net.background.append(ike)
    wait_until(lambda: os.path.exists(net.path("state")) and os.path.exists(net.path("policy")), f"no files: {ike.text()}")
    common = "state: state, policy: policy, state_dir: none, sas_come_later: true, unsupported: skip"
    net.start(f"  - ipsec: {{{common}, direction: in}}\n{net.router()}  - ipsec: {{{common}}}\n",
              outputs=f", control: {operator.socket}")
    operator.wait_until_running()

    def passes(version):
        return " 0% packet loss" in net.host("la", f"ping -{version} -q -c 1 -W 0.3 {net.address('lb', version)}", check=False)

    for version, ends in ((4, "src 10.2.0.254 dst 10.2.0.2"), (6, "src fd02::fe dst fd02::2")):
        template = f"tmpl {ends} proto esp reqid 1 mode tunnel"
        wait_until(lambda: passes(version), "no policy selects it, but it does not pass", 5)
        for rest, may_pass in (("action block", False), ("", True), (template, False), ("tmpl proto esp reqid 1 mode transport level use", True),
                               (f"tmpl {ends} proto ah reqid 1 mode tunnel", False), ("proto tcp action block", True)):
            put_policy(version, rest)
            wait_until(lambda: passes(version) == may_pass, f"with '{rest}', passing is {not may_pass}: {ike.text()}", 5)
    # An SA, if the kernel has ESP.
    added = sh("ip -n gw xfrm state add src 10.2.0.2 dst 10.2.0.254 proto esp spi 0x1001 reqid 1 mode tunnel "
               f"aead 'rfc4106(gcm(aes))' 0x{'5a' * 20} 128", check=False)
    if added:
        print("no SA in the kernel:", added)
    else:
        wait_until(lambda: "0x00001001" in sh(f"cat {net.path('state')}"), "the SA does not come", 5)
        sh("ip -n gw xfrm state delete src 10.2.0.2 dst 10.2.0.254 proto esp spi 0x1001")
        wait_until(lambda: "0x00001001" not in sh(f"cat {net.path('state')}"), "the SA does not go", 5)
    # More changes than are read one by one, and what is left in the end.
    with open(net.path("batch"), "w") as file:
        for command in ("add", "delete"):
            for i in range(2000):
                file.write(f"xfrm policy {command} dir fwd src 203.0.{i // 250}.{i % 250}/32 dst 203.1.0.0/16\n")
    sh(f"ip -n gw -batch {net.path('batch')}")
    put_policy(4, "action block")
    wait_until(lambda: not passes(4), "the last change is not in use", 5)
    # Without any policy, all would pass in the clear: the run keeps those that it has.
    sh("ip -n gw xfrm policy flush")
    wait_until(lambda: "no policies in this file" in ike.text(), "it is not reported", 5)
    check(not passes(4), "without policies, it passes")
    reasons = [function["dropped"]["reasons"] for function in net.stop()["functions"]]
    ike.end()
    check(reasons[2]["no_sa"] > 0 and reasons[2]["blocked"] > 0, reasons[2])


SCENARIOS = {
    "IkeGcm": lambda make: rekeys_without_loss(make, 4, "aes128gcm16", "gw"),
    "IkeCbcIpv6": lambda make: rekeys_without_loss(make, 6, "aes256-sha256", "lb"),
    "XfrmPolicies": follows_policies,
}
