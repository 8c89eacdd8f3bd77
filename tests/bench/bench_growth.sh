# SPDX-License-Identifier: GPL-3.0-or-later
# What a search takes as devices, axes and layers grow. `ok` means: a plan was found, at a gap of at most
# the given one where there is one, in no more than $most seconds where there are such and $most_mib of memory, which is
# looked at where GNU time is installed. Processor time is that of both threads.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
most='' most_mib=4096 peak=''
[ ! -x /usr/bin/time ] || peak="/usr/bin/time -f %M -o $dir/peak"

# row NAME GAP OPTION...: searches $dir/graph.json and prints one line; GAP - is any.
row() {
    name=$1 gap=$2
    shift 2
    : >"$dir/peak"
    # shellcheck disable=SC2086  # a command and its options
    /usr/bin/env bash -c 'TIMEFORMAT="%R %U"; time "$@"' row $peak meshtf-plan search "$dir/graph.json" --json -o "$dir/plan.json" "$@" \
        >"$dir/out" 2>"$dir/err"
    # shellcheck disable=SC2046  # two numbers, apart on purpose
    set -- $(tail -n 1 "$dir/err")
    found=$(sed -n 's/^ *"gap": *\([0-9.e+-]*\),*$/\1/p' "$dir/out" | head -n 1)
    awk -v name="$name" -v gap="$gap" -v found="$found" -v wall="$1" -v cpu="$2" -v most="$most" -v most_mib="$most_mib" \
        -v peak="$(tail -n 1 "$dir/peak")" 'BEGIN {
        good = found != "" && (gap == "-" || found <= gap) && (most == "" || wall <= most + 0) && peak / 1024 <= most_mib + 0
        printf "%-44s %8s %8.1f %8.1f %6s  %s\n", name, (found == "" ? "none" : sprintf("%.3f", 100 * found)), wall, cpu,
            (peak == "" ? "-" : sprintf("%.0f", peak / 1024)), good ? "ok" : "SHORT"
        exit !good }' || failed=1
}

printf '%-44s %8s %8s %8s %6s\n' '' 'gap %' seconds cpu MiB
echo 'devices: GPT-3 175B, batch 1536, TPU v4'
meshtf-plan model gpt --preset gpt3-175b --batch 1536 -o "$dir/graph.json" >/dev/null
for devices in 256 1024 4096; do
    row "rules, all meshes of $devices" 0 --devices "$devices" --machine tpu-v4 --layouts rule
done
row 'free layouts, 16x256' 0.01 --mesh 'a:16;b:256' --machine tpu-v4 --seconds 40
most_mib=1536
row 'free layouts, 16x16x16' 0.01 --mesh 'a:16;b:16;c:16' --machine tpu-v4 --gap 0.01
most_mib=4096
row 'free layouts, all meshes of 6144 TPU v5p' 0.02 --devices 6144 --machine tpu-v5p --gap 0.02
meshtf-plan model llama --preset llama3.1-405b --batch 2048 --length 8192 -o "$dir/graph.json" >/dev/null
row 'Llama 3.1 405B, 16384 H100, three axes' 0.02 --devices 16384 --machine h100 --max-mesh-dims 4 --gap 0.02

echo 'axes: transformer-lm demo, 5 s'
meshtf-plan model transformer-lm --preset demo -o "$dir/graph.json" >/dev/null
most=6.25
for mesh in 'a:4' 'a:4;b:4' 'a:4;b:4;c:2' 'a:4;b:2;c:2;d:2' 'a:2;b:2;c:2;d:2;e:2' 'a:2;b:2;c:2;d:2;e:2;f:2'; do
    row "$mesh" - --mesh "$mesh" --max-mesh-dims 6 --seconds 5
done
most=

echo 'layers: transformer-lm of 1024, 8x8 TPU v4'
for layers in 16 64 256 1000; do
    meshtf-plan model transformer-lm --preset size0 --layers "$layers" --d-model 1024 --d-ff 4096 --heads 16 --d-kv 64 --batch 64 \
        -o "$dir/graph.json" >/dev/null
    row "$layers layers" 0.005 --mesh 'rows:8;cols:8' --machine tpu-v4 --gap 0.005
done
row '1000 layers, all meshes of 64 H100' 0.02 --devices 64 --machine h100

echo 'time: --seconds S, which may take 1 s and a twentieth more'
for layers in 250 500 1000; do
    meshtf-plan model transformer-lm --preset size0 --layers "$layers" --d-model 1024 --d-ff 4096 --heads 16 --d-kv 64 --batch 64 \
        -o "$dir/graph.json" >/dev/null
    for seconds in 5 10 20; do
        most=$(awk -v s="$seconds" 'BEGIN { print 1.05 * s + 1 }')
        row "$layers layers, 8x8 TPU v4, S = $seconds" - --mesh 'rows:8;cols:8' --machine tpu-v4 --gap 0.005 --seconds "$seconds"
    done
done
most=

# on NAME MACHINE DEVICES MODEL...: a family's model on so many devices, V100 in float32.
on() {
    name=$1 machine=$2 devices=$3
    shift 3
    meshtf-plan model "$@" -o "$dir/graph.json" >/dev/null
    set --
    [ "$machine" != v100 ] || set -- --precision f32
    row "$name, $devices $machine" 0.01 --devices "$devices" --machine "$machine" "$@"
}

# wide NAME MACHINE MODEL...: images, volumes and experts on 64 devices.
wide() {
    name=$1 machine=$2
    shift 2
    on "$name" "$machine" 64 "$@"
}

echo 'wide problems: many ways for each layer'
wide 'DenseNet-121' v100 densenet --preset densenet-121
wide 'ResNet-50, batch 256' v100 resnet --preset resnet-50 --batch 256
wide 'ResNet-50, batch 256' h100 resnet --preset resnet-50 --batch 256
wide 'U-Net 3-D of 256, batch 1' v100 unet --preset unet-3d-256 --batch 1
wide 'big LSTM' v100 lstm-lm --preset 2x8192-1024
wide 'Mixtral 8x7B' h100 mixtral --preset mixtral-8x7b
most=20
for row in '1b 4' '4b 16' '6.8b 32'; do
    meshtf-plan model resnet --preset "alpa-${row% *}" --batch 1536 -o "$dir/graph.json" >/dev/null
    row "Wide-ResNet ${row% *}, ${row#* } of p3.16xlarge" 0.01 --devices "${row#* }" --machine p3.16xlarge --precision f32
done
most=
meshtf-plan model gshard --preset moe-2048e-36l -o "$dir/graph.json" >/dev/null
row 'GShard 600B, 2048 TPU v3' 0.01 --devices 2048 --machine tpu-v3
meshtf-plan model transformer-lm --preset size0 --layers 12 -o "$dir/graph.json" >/dev/null
row '12 layers, 8x8x8 TPU v4' 0.01 --mesh 'a:8;b:8;c:8' --machine tpu-v4

echo 'sizes that nobody asked for by name'
on 'Llama 3 8B, texts of 8192' h100 64 llama --preset llama3-8b --batch 256 --length 8192
on 'Qwen3 30B-A3B, texts of 4096' h100 64 qwen --preset qwen3-30b-a3b --batch 512 --length 4096
on 'DeepSeek-V3, texts of 4096' h800 2048 deepseek --preset deepseek-v3 --batch 3840 --length 4096
on 'Mixtral 8x22B, texts of 4096' h100 512 mixtral --preset mixtral-8x22b --batch 1024 --length 4096
on 'T5 11B' tpu-v3 512 t5 --preset t5-11b --batch 2048 --length 512
on 'ResNet-152, batch 4000' v100 1000 resnet --preset resnet-152 --batch 4000
on 'DenseNet-161, batch 1024' v100 256 densenet --preset densenet-161 --batch 1024
on 'U-Net 3-D of 512, batch 4' v100 512 unet --preset unet-3d --image 512 --batch 4
on 'CosmoFlow of 512, batch 64' v100 512 cosmoflow --preset cosmoflow-512 --batch 64
exit "$failed"
