# Words that a job of the lab can use. What the runner must see goes over the console in lines that begin
# with "@lab ": everything else there is the kernel's or a program's own talk.

say() { echo "@lab $*"; }

# emit NAME FILE: hands a file to the runner; expectations know it by NAME. Base64, because the console
# changes line ends; the sum, because a kernel message may cut in.
emit() {
    say "file $1 $(sha256sum < "$2" | cut -d' ' -f1)"
    base64 < "$2" | sed 's/^/@lab + /'
    say "end $1"
}

# control TARGET WORDS...: asks the runner to do something and waits until it has: "device" is the FIFO of
# the device model, "qemu" the machine's monitor.
control() {
    say "control $*"
    read -r _ < /dev/console
}

# The one interface with a device behind it gets up, an address, and a neighbour that is always known.
bring_up() {
    IFACE=
    for try in $(seq 100); do
        for path in /sys/class/net/*; do
            [ -e "$path/device" ] && IFACE=${path##*/}
        done
        [ -n "$IFACE" ] && break
        sleep 0.1
    done
    if [ -z "$IFACE" ]; then
        say "note no interface"
        return
    fi
    # No traffic of its own accord: the counts of a case are exact.
    echo 1 > "/proc/sys/net/ipv6/conf/$IFACE/disable_ipv6"
    DRIVER=$(readlink "/sys/class/net/$IFACE/device/driver")
    say "interface $IFACE ${DRIVER##*/}"
    link_up
}

# Also needed after what reopens the device: ethtool -L, ethtool -G, a watchdog reset.
link_up() {
    ip link set "$IFACE" up
    for try in $(seq 100); do
        [ "$(cat "/sys/class/net/$IFACE/carrier" 2> /dev/null)" = 1 ] && break
        sleep 0.1
    done
    ip addr add "$ADDRESS" dev "$IFACE" 2> /dev/null
    arp -s "$PEER" "$PEER_MAC" -i "$IFACE"
}

# In 7.2, not yet in 6.12, napi_consume_skb() gives a packet back to the processor that allocated it: the free is
# seen later than the driver did it, and when the list of that processor is full not at all.
free_at_once() { [ -e /proc/sys/net/core/skb_defer_max ] && echo 0 > /proc/sys/net/core/skb_defer_max; }

# counters NAME: what the kernel and the driver count, as JSON.
counters() {
    {
        echo '{"seconds": '"$(cut -d' ' -f1 /proc/uptime)"
        for path in /sys/class/net/"$IFACE"/statistics/*; do
            echo ", \"${path##*/}\": $(cat "$path")"
        done
        # Lines come in pairs: names, values.
        awk '/^Tcp:/ && !names { names = $0; split($0, name); next }
            /^Tcp:/ { for (i in name) if (name[i] == "OutSegs") print ", \"tcp_out_segments\": " $i }' /proc/net/snmp
        echo ', "tx_timeouts": ['
        separator=
        for path in /sys/class/net/"$IFACE"/queues/tx-*/tx_timeout; do
            echo "$separator $(cat "$path")"
            separator=,
        done
        echo '], "ethtool": {'
        /usr/sbin/ethtool -S "$IFACE" 2> /dev/null |
            sed -n 's/^ *\([^:]*\): *\([0-9][0-9]*\)$/"\1": \2,/p' | sed '$s/,$//'
        echo '}, "interrupts": '
        grep -E "$IFACE|$(basename "$(readlink "/sys/class/net/$IFACE/device")")" /proc/interrupts |
            awk '{ for (i = 2; $i ~ /^[0-9]+$/; i++) sum += $i } END { print sum + 0 }'
        echo '}'
    } > "/tmp/$1.json"
    emit "$1" "/tmp/$1.json"
}

# doctor: what ringside may see on this kernel.
doctor() {
    /bin/ringside doctor "$IFACE" --json > /tmp/doctor.json
    say "note doctor ended with $?"
    emit doctor /tmp/doctor.json
}

# trace NAME [OPTION...] -- COMMAND...: records while COMMAND runs; gives NAME_trace and NAME_analysis.
trace() {
    trace_name=$1
    shift
    /bin/ringside trace "$IFACE" -o "/tmp/$trace_name.rsc" --json "$@" > "/tmp/$trace_name.json"
    say "note trace ended with $?"
    emit "${trace_name}_trace" "/tmp/$trace_name.json"
    /bin/ringside analyze "/tmp/$trace_name.rsc" --json > "/tmp/$trace_name.analysis"
    say "note analyze ended with $?"
    emit "${trace_name}_analysis" "/tmp/$trace_name.analysis"
}
