/* SPDX-FileCopyrightText: 2026 The Penstock Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel from outside this program gets from the function `kernel`, and what it gives back. Plain C, for any
 * compiler that makes cubins, fatbins or PTX. A module that was made with this header works with later releases: the
 * structures keep their sizes and the meanings of their members; what is reserved is 0, and may get a meaning.
 *
 *     extern "C" __global__ void my_function(struct penstock_batch batch);
 *
 * It is launched with one thread for each packet or more, in one dimension. It writes a verdict for each packet. */

#ifndef PENSTOCK_KERNEL_ABI_H
#define PENSTOCK_KERNEL_ABI_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#else
#include <stddef.h>
#include <stdint.h>
#endif

/* NOLINTBEGIN: C */

#ifdef __cplusplus
extern "C" {
#endif

#define PENSTOCK_KERNEL_ABI 1u

/* Of `penstock_packet.flags`. */
#define PENSTOCK_NETWORK_HEADER 1u        /* the IP or ARP header is complete: addresses can be read */
#define PENSTOCK_TRANSPORT_HEADER 2u      /* the TCP, UDP, SCTP or ICMP header is complete */
#define PENSTOCK_FRAGMENT 4u              /* one of several fragments */
#define PENSTOCK_LATER_FRAGMENT 8u        /* not the first one: it has no transport header */
#define PENSTOCK_MALFORMED 16u            /* the IP or link header contradicts itself */
#define PENSTOCK_TRUNCATED 32u            /* the capture truncated the packet */
#define PENSTOCK_OPTIONS 64u              /* IPv4 options or IPv6 extension headers */
#define PENSTOCK_MALFORMED_TRANSPORT 128u /* the packet ends within the transport header */
#define PENSTOCK_PORTS 256u               /* the ports of TCP, UDP or SCTP are there; not set for fragments */

/* Of `penstock_packet.network`. */
#define PENSTOCK_NO_NETWORK 0u
#define PENSTOCK_IPV4 1u
#define PENSTOCK_IPV6 2u
#define PENSTOCK_ARP 3u
#define PENSTOCK_OTHER_NETWORK 4u

/* Of `penstock_packet.link_type`. */
#define PENSTOCK_ETHERNET 0u

/* Of ports. */
#define PENSTOCK_NO_PORT 0xffffu

/* A packet, and where its headers are. Offsets of headers count from the first byte of the frame, and are valid if the
 * flags say that the header is there. Headers that are there lie within the bytes that are available. */
struct penstock_packet {
  uint64_t timestamp_ns;     /* since the epoch */
  uint32_t offset;           /* of the frame in `penstock_batch.frames`; a multiple of 16 */
  uint32_t available;        /* bytes of the frame that are there: take bounds from this */
  uint32_t length;           /* of the frame; more than `available` if the function does not read payloads */
  uint32_t wire_length;      /* more than `length` if the capture truncated the frame */
  uint32_t flow_hash;        /* the same in both directions of a flow; 0 if the function does not read it */
  uint32_t mark;             /* of the chain, as in nftables */
  uint32_t end;              /* of the IP packet in the frame; padding follows */
  uint16_t network_offset;   /* of the IP or ARP header */
  uint16_t transport_offset; /* after IP options and extension headers */
  uint16_t payload_offset;   /* after the transport header */
  uint16_t vlan_tci;         /* outermost tag */
  uint16_t flags;
  uint16_t in_port;  /* of the chain, by its position in the chain file, from 0 */
  uint16_t out_port; /* by which the packet leaves, if an earlier function has chosen; or PENSTOCK_NO_PORT */
  uint8_t network;
  uint8_t transport; /* IP protocol number */
  uint8_t vlan_count;
  uint8_t link_type;
  uint8_t reserved[10];
};

/* Of `penstock_verdict.decision`. Before the kernel runs, all packets are undecided. */
#define PENSTOCK_UNDECIDED 0u /* no packet may be, once the kernel has ended */
#define PENSTOCK_PASS 1u      /* to the next function of the chain */
#define PENSTOCK_DROP 2u      /* for `reason`, a position in the function's list `drops`, from 0 */

struct penstock_verdict {
  uint16_t decision;
  uint16_t reason;
  uint32_t mark; /* the packet's new mark, if the function writes `mark`; before the kernel runs, 0 */
};

/* The only parameter of a kernel, by value. All pointers are to memory of the device. */
struct penstock_batch {
  uint32_t abi;   /* PENSTOCK_KERNEL_ABI of the program */
  uint32_t count; /* of packets: threads from this one on have none */
  uint8_t* frames;
  uint64_t frames_bytes;
  const struct penstock_packet* packets;
  struct penstock_verdict* verdicts;
  const uint8_t* table; /* the content of the function's file `table`; null: there is none */
  uint64_t table_bytes;
  uint64_t reserved[2];
};

#ifdef __cplusplus
}
static_assert(sizeof(penstock_packet) == 64 && sizeof(penstock_verdict) == 8 && sizeof(penstock_batch) == 72,
              "the sizes of the ABI");
static_assert(offsetof(penstock_packet, end) == 32 && offsetof(penstock_packet, out_port) == 48, "its places");
static_assert(offsetof(penstock_batch, table_bytes) == 48, "ditto");
#else
_Static_assert(sizeof(struct penstock_packet) == 64 && sizeof(struct penstock_verdict) == 8 &&
                   sizeof(struct penstock_batch) == 72,
               "the sizes of the ABI");
#endif

/* NOLINTEND */

#endif
