# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Transfers between meshes from the shell.
. tests/support/tap.sh

transfer() {
    run meshtf-plan transfer --tensor 1024x1024x512 --machine p3.8xlarge "$@"
}

transfer --from 2x4:RS0R --to 2x4:S0RR --json
claim "a transfer is planned" exits 0
claim "four boxes keep every link of 10 Gbit/s busy with 1 GiB" says '"busiest_host_bytes": 1073741824'
claim "and no plan does with less" says '"lower_bound_bytes": 1073741824'
claim "which takes 0.859 s" says '"seconds": 0.859'
claim "other ways stand beside it" says '"algorithm":"send_receive","seconds":3.43'

transfer --from 2x4:RRR --to 2x4:S0RR
claim "people get a drawing" says "host   1 sends    |bbb"
transfer --from 2x4:RRR --to 2x4:S0RR --dtype bf16 --json
claim "elements of two bytes halve it" says '"busiest_host_bytes": 536870912'
transfer --from 4:S0RR --to 4:S0RR --to-device 0 --json
claim "nothing travels to where it is" says '"bytes_across": 0'

transfer --from 2x4:S0R --to 2x4:S0RR
claim "a placement of too few dimensions is refused" bad_input
transfer --from 2x4:S2RR --to 2x4:S0RR
claim "an axis that the mesh lacks is refused" bad_input
transfer --from 2x4:S0RR
claim "a missing target is refused" bad_input
transfer --from 2x4:S0RR --to 2x4:S0RR --to-device -1
claim "a device below the first is refused" says_error "--to-device -1 is not a device number"
transfer --from 2x4:S0RR --to 2x4:S0RR --chunks 0
claim "a broadcast in no parts is refused" says_error "--chunks 0 is not between 1 and"
run meshtf-plan transfer --tensor 8x8 --from 2:S0R --to 4:RS1 --machine p3.8xlarge
claim "an axis that the mesh lacks is refused" says_error "S with some of the mesh's 1 axes (counted from 0"
transfer --from 2x4:S0RR --to 2x4:S0RR --dtype f7
claim "an unknown type is refused" bad_input
run meshtf-plan transfer --tensor 8x --from 2:S0 --to 2:S0 --machine v100
claim "a broken shape is refused" bad_input
run meshtf-plan transfer --tensor 8 --from 2:S0 --to 2:S0 --machine nowhere
claim "an unknown machine is refused" bad_input
for machine in tpu-v4 h100 cpu-host; do
    run meshtf-plan transfer --tensor 64x64 --from 2x2:S0S1 --to 2x2:S1S0 --machine "$machine"
    claim "$machine carries transfers" exits 0
done
done_testing
