//! More files of `/proc` and `/sys` with the contents that they have on a machine with one
//! processor that has just started. Programs read them for statistics and limits.

use super::generated::Generated;

/// Files with constant contents.
pub const TEXTS: &[(&str, &str)] = &[
    (
        "/proc/cgroups",
        "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t0\t1\t1\ncpu\t0\t1\t1\n\
         memory\t0\t1\t1\npids\t0\t1\t1\n",
    ),
    ("/proc/consoles", ""),
    (
        "/proc/devices",
        "Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/ptmx\n128 ptm\n136 pts\n\n\
         Block devices:\n  8 sd\n",
    ),
    (
        "/proc/diskstats",
        "   8       1 sda1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
    ),
    (
        "/proc/interrupts",
        "           CPU0       \nLOC:          0   Local timer interrupts\n",
    ),
    ("/proc/locks", ""),
    ("/proc/misc", ""),
    ("/proc/modules", ""),
    ("/proc/net/dev_mcast", ""),
    (
        "/proc/net/mcfilter",
        "Idx Device        MCA        SRC    INC    EXC\n",
    ),
    ("/proc/net/netstat", NETSTAT),
    (
        "/proc/net/packet",
        "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n",
    ),
    ("/proc/net/psched", "000003e8 00000040 000f4240 3b9aca00\n"),
    (
        "/proc/net/raw6",
        "  sl  local_address                         remote_address                        st \
         tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n",
    ),
    (
        "/proc/net/rt_cache",
        "Iface\tDestination\tGateway \tFlags\t\tRefCnt\tUse\tMetric\tSource\t\tMTU\tWindow\tIRTT\t\
         TOS\tHHRef\tHHUptod\tSpecDst\n",
    ),
    ("/proc/net/snmp", SNMP),
    ("/proc/net/wireless", WIRELESS),
    (
        "/proc/partitions",
        "major minor  #blocks  name\n\n   8        1    8388608 sda1\n",
    ),
    (
        "/proc/pressure/cpu",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n\
         full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    ),
    ("/proc/pressure/io", PRESSURE),
    ("/proc/pressure/memory", PRESSURE),
    (
        "/proc/softirqs",
        "                    CPU0       \n          HI:          0\n       TIMER:          0\n\
         \x20     NET_TX:          0\n      NET_RX:          0\n",
    ),
    ("/proc/sys/fs/aio-nr", "0\n"),
    ("/proc/sys/fs/dentry-state", "0\t0\t45\t0\t0\t0\n"),
    ("/proc/sys/fs/file-nr", "0\t0\t1048576\n"),
    ("/proc/sys/fs/inode-nr", "0\t0\n"),
    ("/proc/sys/kernel/random/poolsize", "256\n"),
    (
        "/proc/sys/kernel/seccomp/actions_avail",
        "kill_process kill_thread trap errno user_notif trace log allow\n",
    ),
    (
        "/proc/timer_list",
        "Timer List Version: v0.9\nHRTIMER_MAX_CLOCK_BASES: 8\n",
    ),
    ("/proc/vmstat", MEMORY_COUNTERS),
];

const PRESSURE: &str = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n\
full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

const MEMORY_COUNTERS: &str = "nr_free_pages 1048576\nnr_inactive_anon 0\nnr_active_anon 0\n\
nr_inactive_file 0\nnr_active_file 0\nnr_mlock 0\nnr_dirty 0\nnr_writeback 0\nnr_mapped 0\n\
nr_anon_pages 0\nnr_file_pages 0\nnr_shmem 0\npgpgin 0\npgpgout 0\npswpin 0\npswpout 0\n\
pgalloc_normal 0\npgfree 0\npgfault 0\npgmajfault 0\noom_kill 0\n";

const SNMP: &str = "Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams \
InUnknownProtos InDiscards InDelivers OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds \
ReasmOKs ReasmFails FragOKs FragFails FragCreates\n\
Ip: 2 64 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
Icmp: InMsgs InErrors InCsumErrors InDestUnreachs InTimeExcds InParmProbs InSrcQuenchs \
InRedirects InEchos InEchoReps InTimestamps InTimestampReps InAddrMasks InAddrMaskReps OutMsgs \
OutErrors OutDestUnreachs OutTimeExcds OutParmProbs OutSrcQuenchs OutRedirects OutEchos \
OutEchoReps OutTimestamps OutTimestampReps OutAddrMasks OutAddrMaskReps\n\
Icmp: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets \
CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\n\
Tcp: 1 200 120000 -1 0 0 0 0 0 0 0 0 0 0 0\n\
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors \
IgnoredMulti MemErrors\n\
Udp: 0 0 0 0 0 0 0 0 0\n\
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors \
IgnoredMulti MemErrors\n\
UdpLite: 0 0 0 0 0 0 0 0 0\n";

const NETSTAT: &str = "TcpExt: SyncookiesSent SyncookiesRecv SyncookiesFailed EmbryonicRsts \
PruneCalled TW DelayedACKs ListenOverflows ListenDrops TCPTimeouts TCPAbortOnData \
TCPAbortOnClose TCPAbortOnMemory TCPAbortOnTimeout\n\
TcpExt: 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
IpExt: InNoRoutes InTruncatedPkts InMcastPkts OutMcastPkts InBcastPkts OutBcastPkts InOctets \
OutOctets InMcastOctets OutMcastOctets InBcastOctets OutBcastOctets\n\
IpExt: 0 0 0 0 0 0 0 0 0 0 0 0\n";

const WIRELESS: &str = "Inter-| sta-|   Quality        |   Discarded packets               | \
Missed | WE\n face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22\n";

/// Files whose contents differ from one look to the next.
pub const CHANGING: &[(&str, Generated)] = &[("/proc/sys/kernel/random/uuid", Generated::Uuid)];

/// Files about the processor, its caches, its clock and its memory.
pub const SYSTEM: &[(&str, &str)] = &[
    (
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "tsc \n",
    ),
    (
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    (
        "/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size",
        "64\n",
    ),
    ("/sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
    (
        "/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
        "0\n",
    ),
    (
        "/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_map",
        "1\n",
    ),
    ("/sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
    (
        "/sys/devices/system/cpu/cpu0/cache/index1/coherency_line_size",
        "64\n",
    ),
    ("/sys/devices/system/cpu/cpu0/cache/index1/level", "2\n"),
    (
        "/sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_list",
        "0\n",
    ),
    (
        "/sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_map",
        "1\n",
    ),
    ("/sys/devices/system/cpu/cpu0/cache/index1/size", "4096K\n"),
    (
        "/sys/devices/system/cpu/cpu0/cache/index1/type",
        "Unified\n",
    ),
    ("/sys/devices/system/cpu/cpu0/topology/core_cpus", "1\n"),
    (
        "/sys/devices/system/cpu/cpu0/topology/core_cpus_list",
        "0\n",
    ),
    ("/sys/devices/system/cpu/cpu0/topology/package_cpus", "1\n"),
    (
        "/sys/devices/system/cpu/cpu0/topology/package_cpus_list",
        "0\n",
    ),
    ("/sys/devices/system/cpu/smt/active", "0\n"),
    ("/sys/devices/system/cpu/smt/control", "notsupported\n"),
    ("/sys/devices/system/node/has_cpu", "0\n"),
    ("/sys/devices/system/node/has_memory", "0\n"),
    ("/sys/devices/system/node/node0/distance", "10\n"),
    (
        "/sys/devices/system/node/node0/meminfo",
        "Node 0 MemTotal:        8388608 kB\nNode 0 MemFree:         4194304 kB\n\
         Node 0 MemUsed:         4194304 kB\n",
    ),
    (
        "/sys/fs/cgroup/cgroup.controllers",
        "cpuset cpu memory pids\n",
    ),
    ("/sys/fs/cgroup/cgroup.subtree_control", "\n"),
    (
        "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
        "0\n",
    ),
    (
        "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "0\n",
    ),
    ("/sys/kernel/mm/ksm/run", "0\n"),
    (
        "/sys/kernel/mm/transparent_hugepage/defrag",
        "always defer defer+madvise [madvise] never\n",
    ),
    (
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "always within_size advise [never] deny force\n",
    ),
];

/// Writable files (`sysctl`), with their initial contents.
pub const SETTINGS: &[(&str, &str)] = &[
    ("/proc/sys/fs/aio-max-nr", "65536\n"),
    ("/proc/sys/fs/dir-notify-enable", "1\n"),
    ("/proc/sys/fs/epoll/max_user_watches", "1048576\n"),
    ("/proc/sys/fs/lease-break-time", "45\n"),
    ("/proc/sys/fs/leases-enable", "1\n"),
    ("/proc/sys/fs/mount-max", "100000\n"),
    ("/proc/sys/fs/pipe-user-pages-hard", "0\n"),
    ("/proc/sys/fs/pipe-user-pages-soft", "16384\n"),
    ("/proc/sys/kernel/auto_msgmni", "0\n"),
    ("/proc/sys/kernel/core_uses_pid", "0\n"),
    ("/proc/sys/kernel/dmesg_restrict", "0\n"),
    ("/proc/sys/kernel/domainname", "(none)\n"),
    ("/proc/sys/kernel/hung_task_timeout_secs", "120\n"),
    ("/proc/sys/kernel/kptr_restrict", "0\n"),
    ("/proc/sys/kernel/msg_next_id", "-1\n"),
    ("/proc/sys/kernel/nmi_watchdog", "0\n"),
    ("/proc/sys/kernel/numa_balancing", "0\n"),
    ("/proc/sys/kernel/panic", "0\n"),
    ("/proc/sys/kernel/perf_event_paranoid", "2\n"),
    ("/proc/sys/kernel/printk", "4\t4\t1\t7\n"),
    ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("/proc/sys/kernel/sem_next_id", "-1\n"),
    ("/proc/sys/kernel/shm_next_id", "-1\n"),
    ("/proc/sys/kernel/shm_rmid_forced", "0\n"),
    ("/proc/sys/kernel/tainted", "0\n"),
    ("/proc/sys/kernel/watchdog", "1\n"),
    ("/proc/sys/net/core/bpf_jit_enable", "1\n"),
    ("/proc/sys/net/core/busy_poll", "0\n"),
    ("/proc/sys/net/core/busy_read", "0\n"),
    ("/proc/sys/net/core/default_qdisc", "pfifo_fast\n"),
    ("/proc/sys/net/core/netdev_max_backlog", "1000\n"),
    ("/proc/sys/net/core/optmem_max", "131072\n"),
    ("/proc/sys/net/ipv4/conf/all/accept_redirects", "1\n"),
    ("/proc/sys/net/ipv4/conf/all/forwarding", "0\n"),
    ("/proc/sys/net/ipv4/conf/all/rp_filter", "0\n"),
    ("/proc/sys/net/ipv4/conf/all/send_redirects", "1\n"),
    ("/proc/sys/net/ipv4/conf/default/forwarding", "0\n"),
    ("/proc/sys/net/ipv4/conf/default/rp_filter", "0\n"),
    ("/proc/sys/net/ipv4/conf/lo/forwarding", "0\n"),
    ("/proc/sys/net/ipv4/icmp_echo_ignore_all", "0\n"),
    ("/proc/sys/net/ipv4/icmp_echo_ignore_broadcasts", "1\n"),
    ("/proc/sys/net/ipv4/igmp_max_memberships", "20\n"),
    ("/proc/sys/net/ipv4/ip_default_ttl", "64\n"),
    ("/proc/sys/net/ipv4/ip_local_reserved_ports", "\n"),
    ("/proc/sys/net/ipv4/ip_no_pmtu_disc", "0\n"),
    ("/proc/sys/net/ipv4/ip_nonlocal_bind", "0\n"),
    (
        "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
        "reno cubic\n",
    ),
    ("/proc/sys/net/ipv4/tcp_fastopen", "1\n"),
    ("/proc/sys/net/ipv4/tcp_fin_timeout", "60\n"),
    ("/proc/sys/net/ipv4/tcp_keepalive_intvl", "75\n"),
    ("/proc/sys/net/ipv4/tcp_keepalive_probes", "9\n"),
    ("/proc/sys/net/ipv4/tcp_keepalive_time", "7200\n"),
    ("/proc/sys/net/ipv4/tcp_max_orphans", "32768\n"),
    ("/proc/sys/net/ipv4/tcp_max_tw_buckets", "32768\n"),
    ("/proc/sys/net/ipv4/tcp_mem", "94350\t125800\t188700\n"),
    ("/proc/sys/net/ipv4/tcp_retries1", "3\n"),
    ("/proc/sys/net/ipv4/tcp_retries2", "15\n"),
    ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
    ("/proc/sys/net/ipv4/tcp_sack", "1\n"),
    ("/proc/sys/net/ipv4/tcp_syn_retries", "6\n"),
    ("/proc/sys/net/ipv4/tcp_synack_retries", "5\n"),
    ("/proc/sys/net/ipv4/tcp_syncookies", "1\n"),
    ("/proc/sys/net/ipv4/tcp_timestamps", "1\n"),
    ("/proc/sys/net/ipv4/tcp_tw_reuse", "2\n"),
    ("/proc/sys/net/ipv4/tcp_window_scaling", "1\n"),
    ("/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"),
    ("/proc/sys/net/ipv4/udp_mem", "188700\t251600\t377400\n"),
    ("/proc/sys/net/ipv4/udp_rmem_min", "4096\n"),
    ("/proc/sys/net/ipv4/udp_wmem_min", "4096\n"),
    ("/proc/sys/net/ipv6/bindv6only", "0\n"),
    ("/proc/sys/net/ipv6/conf/all/forwarding", "0\n"),
    ("/proc/sys/net/ipv6/conf/default/disable_ipv6", "0\n"),
    ("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "0\n"),
    ("/proc/sys/user/max_user_namespaces", "32768\n"),
    ("/proc/sys/vm/dirty_background_ratio", "10\n"),
    ("/proc/sys/vm/dirty_expire_centisecs", "3000\n"),
    ("/proc/sys/vm/dirty_ratio", "20\n"),
    ("/proc/sys/vm/min_free_kbytes", "67584\n"),
    ("/proc/sys/vm/nr_hugepages", "0\n"),
    ("/proc/sys/vm/oom_kill_allocating_task", "0\n"),
    ("/proc/sys/vm/panic_on_oom", "0\n"),
    ("/proc/sys/vm/vfs_cache_pressure", "100\n"),
    ("/proc/sys/vm/zone_reclaim_mode", "0\n"),
];

/// Links in the directory `ns` of a process: its namespaces, which are those of the machine.
pub const NAMESPACES: &[(&str, &str)] = &[
    ("cgroup", "cgroup:[4026531835]"),
    ("ipc", "ipc:[4026531839]"),
    ("mnt", "mnt:[4026531841]"),
    ("net", "net:[4026531840]"),
    ("pid", "pid:[4026531836]"),
    ("pid_for_children", "pid:[4026531836]"),
    ("time", "time:[4026531834]"),
    ("time_for_children", "time:[4026531834]"),
    ("user", "user:[4026531837]"),
    ("uts", "uts:[4026531838]"),
];
