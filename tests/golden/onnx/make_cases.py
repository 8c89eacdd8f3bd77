# SPDX-License-Identifier: GPL-3.0-or-later
# Cases for operators that libonnx-testdata 1.12 does not have yet, in its form: NAME/model.onnx and
# NAME/test_data_set_0/{input,output}_K.pb. Outputs are PyTorch's; files are written by hand, since Debian's onnx does
# not know the operators. From the top of the tree: python3 tests/golden/onnx/make_cases.py tests/golden/onnx
import math, os, struct, sys
import torch
import torch.nn.functional as F

FLOAT, UINT8, INT8, INT32, INT64, BOOL = 1, 2, 3, 6, 7, 9


def varint(n):
    out = b''
    n &= (1 << 64) - 1
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def kind_of(x):
    return {torch.float32: FLOAT, torch.uint8: UINT8, torch.int8: INT8, torch.int32: INT32, torch.int64: INT64, torch.bool: BOOL}[x.dtype]


def tensor(name, x):
    data = x.contiguous().numpy().tobytes()
    return b''.join(number(1, n) for n in x.shape) + number(2, kind_of(x)) + message(8, name) + message(9, data)


def stored(name, x, begin):
    """A tensor whose elements another file has."""
    said = ('location', 'model.data'), ('offset', str(begin)), ('length', str(x.numel() * x.element_size()))
    return b''.join(number(1, n) for n in x.shape) + number(2, kind_of(x)) + message(8, name) + b''.join(
        message(13, message(1, key) + message(2, value)) for key, value in said) + number(14, 1)


def info(name, x):
    shape = b''.join(message(1, number(1, n)) for n in x.shape)
    return message(1, name) + message(2, message(1, number(1, kind_of(x)) + message(2, shape)))


def attribute(name, value):
    if isinstance(value, str):
        return message(1, name) + message(4, value) + number(20, 3)
    if isinstance(value, list):
        return message(1, name) + b''.join(message(9, word) for word in value) + number(20, 8)
    if isinstance(value, tuple):
        return message(1, name) + b''.join(number(8, n) for n in value) + number(20, 7)
    if isinstance(value, float):
        return message(1, name) + varint(2 << 3 | 5) + struct.pack('<f', value) + number(20, 1)
    return message(1, name) + number(3, value) + number(20, 2)


def case(name, op, inputs, outputs, opset=23, domain='', held=(), beside=(), **attributes):
    """Inputs and outputs by name, None where one is left out; those in `held` are the file's, those in `beside` another's."""
    node = b''.join(message(1, k if x is not None else '') for k, x in inputs.items())
    node += b''.join(message(2, k if x is not None else '') for k, x in outputs.items()) + message(4, op)
    node += b''.join(message(5, attribute(k, v)) for k, v in attributes.items()) + message(7, domain)
    graph = message(1, node) + message(2, name)
    fed = {k: x for k, x in inputs.items() if x is not None and k not in held and k not in beside}
    made = {k: x for k, x in outputs.items() if x is not None}
    graph += b''.join(message(5, tensor(k, inputs[k])) for k in held)
    data = b''
    for k in beside:
        graph += message(5, stored(k, inputs[k], len(data)))
        data += inputs[k].numpy().tobytes()
    graph += b''.join(message(11, info(k, x)) for k, x in fed.items())
    graph += b''.join(message(12, info(k, x)) for k, x in made.items())
    model = number(1, 10) + message(7, graph) + message(8, message(1, '') + number(2, opset))
    if domain:
        model += message(8, message(1, domain) + number(2, 1))
    folder = os.path.join(sys.argv[1], name)
    os.makedirs(os.path.join(folder, 'test_data_set_0'), exist_ok=True)
    open(os.path.join(folder, 'model.onnx'), 'wb').write(model)
    if data:
        open(os.path.join(folder, 'model.data'), 'wb').write(data)
    for kind, values in ('input', fed), ('output', made):
        for i, (k, x) in enumerate(values.items()):
            open(os.path.join(folder, 'test_data_set_0', f'{kind}_{i}.pb'), 'wb').write(tensor(k, x))


torch.manual_seed(1)
rand = torch.randn

# ---- Attention: scores = softmax(cap tanh(q k / cap) + mask) ----


def attend(q, k, v, mask=None, causal=False, scale=None, cap=0):
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    v = v.repeat_interleave(q.shape[1] // v.shape[1], 1)
    scores = q @ k.mT * (q.shape[3] ** -0.5 if scale is None else scale)
    if cap > 0:
        scores = cap * torch.tanh(scores / cap)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if causal:
        places = torch.ones(q.shape[2], k.shape[2]).tril(k.shape[2] - q.shape[2])
        scores = scores.masked_fill(places == 0, -torch.inf)
    return scores.softmax(-1) @ v


def heads(x, n):
    return x.unflatten(2, (n, -1)).transpose(1, 2)


def flat(x):
    return x.transpose(1, 2).flatten(2)


q, k, v = rand(2, 3, 4, 8), rand(2, 3, 6, 8), rand(2, 3, 6, 10)
case('attention', 'Attention', dict(q=q, k=k, v=v), dict(y=attend(q, k, v)))
case('attention_scale', 'Attention', dict(q=q, k=k, v=v), dict(y=attend(q, k, v, scale=0.1)), scale=0.1)
mask = rand(4, 6)
case('attention_mask', 'Attention', dict(q=q, k=k, v=v, mask=mask), dict(y=attend(q, k, v, mask)))
bits = rand(2, 1, 4, 6) > -0.5
bits[..., 0] = True
case('attention_bool_mask', 'Attention', dict(q=q, k=k, v=v, mask=bits), dict(y=attend(q, k, v, bits)))
q = rand(2, 3, 6, 8)
case('attention_causal', 'Attention', dict(q=q, k=k, v=v), dict(y=attend(q, k, v, causal=True)), is_causal=1)
case('attention_softcap', 'Attention', dict(q=q, k=k, v=v), dict(y=attend(q, k, v, causal=True, cap=1.5)), is_causal=1, softcap=1.5)
q = rand(2, 6, 4, 8)
case('attention_groups', 'Attention', dict(q=q, k=k, v=v), dict(y=attend(q, k, v)))
q, k, v = rand(2, 4, 32), rand(2, 6, 16), rand(2, 6, 20)
case('attention_3d', 'Attention', dict(q=q, k=k, v=v), dict(y=flat(attend(heads(q, 4), heads(k, 2), heads(v, 2)))), q_num_heads=4, kv_num_heads=2)
q, k, v = rand(2, 2, 3, 8), rand(2, 2, 3, 8), rand(2, 2, 3, 8)
past_k, past_v = rand(2, 2, 5, 8), rand(2, 2, 5, 8)
now_k, now_v = torch.cat((past_k, k), 2), torch.cat((past_v, v), 2)
case('attention_past', 'Attention', dict(q=q, k=k, v=v, mask=None, past_k=past_k, past_v=past_v),
     dict(y=attend(q, now_k, now_v, causal=True), now_k=now_k, now_v=now_v), is_causal=1)

# ---- Rotary positions, by complex numbers ----


def rotate(x, cos, sin, neighbours=False):
    """x [batch, heads, places, features] by angles [batch, places, pairs]."""
    turns = 2 * cos.shape[-1]
    part, rest = x[..., :turns], x[..., turns:]
    pairs = part.unflatten(3, (-1, 2)) if neighbours else part.unflatten(3, (2, -1)).mT
    turned = torch.view_as_complex(pairs.contiguous()) * torch.complex(cos, sin)[:, None]
    pairs = torch.view_as_real(turned)
    return torch.cat(((pairs if neighbours else pairs.mT).flatten(3), rest), 3)


angles = torch.outer(torch.arange(9.), 10. ** -torch.arange(0, 1, 0.25))
cos, sin = angles.cos(), angles.sin()
ids = torch.tensor([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]])
x = rand(2, 3, 5, 8)
case('rotary', 'RotaryEmbedding', dict(x=x, cos=cos, sin=sin, ids=ids), dict(y=rotate(x, cos[ids], sin[ids])), held=('cos', 'sin'))
case('rotary_neighbours', 'RotaryEmbedding', dict(x=x, cos=cos, sin=sin, ids=ids), dict(y=rotate(x, cos[ids], sin[ids], True)), interleaved=1)
case('rotary_no_ids', 'RotaryEmbedding', dict(x=x, cos=cos[ids], sin=sin[ids]), dict(y=rotate(x, cos[ids], sin[ids])))
x = rand(2, 3, 5, 12)
case('rotary_part', 'RotaryEmbedding', dict(x=x, cos=cos, sin=sin, ids=ids), dict(y=rotate(x, cos[ids], sin[ids], True)), interleaved=1, rotary_embedding_dim=8)
x = rand(2, 5, 24)
y = flat(rotate(heads(x, 3), cos[ids], sin[ids]))
case('rotary_3d', 'RotaryEmbedding', dict(x=x, cos=cos, sin=sin, ids=ids), dict(y=y), num_heads=3)
case('microsoft_rotary', 'RotaryEmbedding', dict(x=x, ids=ids, cos=cos, sin=sin), dict(y=y), 17, 'com.microsoft', num_heads=3, interleaved=0)

# ---- Norms and functions ----

x, skip, bias, scale = rand(2, 5, 8), rand(2, 5, 8), rand(8), rand(8)
all = x + skip + bias
rms = all * (all.square().mean(-1, True) + 1e-5).rsqrt() * scale
case('rms_norm', 'RMSNormalization', dict(x=all, scale=scale), dict(y=rms), axis=-1, epsilon=1e-5)
none = dict(mean=None, deviation=None)
case('microsoft_skip_rms_norm', 'SkipSimplifiedLayerNormalization', dict(x=x, skip=skip, scale=scale, bias=bias),
     dict(y=rms, **none, sum=all), 17, 'com.microsoft', epsilon=1e-5)
shift = rand(8)
case('microsoft_skip_layer_norm', 'SkipLayerNormalization', dict(x=x, skip=skip, scale=scale, shift=shift, bias=bias),
     dict(y=F.layer_norm(all, (8,), scale, shift, 1e-5), **none, sum=all), 17, 'com.microsoft', epsilon=1e-5)
case('microsoft_bias_gelu', 'BiasGelu', dict(x=x, bias=bias), dict(y=F.gelu(x + bias)), 17, 'com.microsoft')
case('microsoft_fast_gelu', 'FastGelu', dict(x=x, bias=bias), dict(y=F.gelu(x + bias, approximate='tanh')), 17, 'com.microsoft')
case('gelu', 'Gelu', dict(x=x), dict(y=F.gelu(x)), 20)
x, scale, bias = rand(2, 6, 3, 4), rand(6), rand(6)
case('group_norm', 'GroupNormalization', dict(x=x, scale=scale, bias=bias), dict(y=F.group_norm(x, 3, scale, bias)), 21, num_groups=3, epsilon=1e-5)

# ---- Recurrent layers of two directions, whose gates PyTorch has in another order ----


def ordered(layer, name, order):
    parts = (getattr(layer, name + end).detach().chunk(len(order)) for end in ('', '_reverse'))
    return torch.stack([torch.cat([part[k] for k in order]) for part in map(list, parts)])


def both(layer, order):
    w, r, b, c = (ordered(layer, n + '_l0', order) for n in ('weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'))
    return dict(w=w, r=r, b=torch.cat((b, c), 1))


x = rand(5, 2, 3)
for name, layer, order, more in (('lstm', torch.nn.LSTM(3, 4, bidirectional=True), (0, 3, 1, 2), {}),
                                 ('gru', torch.nn.GRU(3, 4, bidirectional=True), (1, 0, 2), dict(linear_before_reset=1)),
                                 ('rnn', torch.nn.RNN(3, 4, bidirectional=True, nonlinearity='relu'), (0,),
                                  dict(activations=['Relu', 'Relu']))):
    with torch.no_grad():
        y, state = layer(x)
    h, *cell = state if name == 'lstm' else (state,)
    case(name, name.upper(), dict(x=x, **both(layer, order)), dict(y=y.unflatten(2, (2, 4)).transpose(1, 2), h=h, **dict(zip('c', cell))), 14,
         held=('w', 'r', 'b'), direction='bidirectional', hidden_size=4, **more)

# ---- A quantised convolution in groups, with a scale and a zero for each channel, strides, padding and a bias ----

x = torch.randint(0, 256, (2, 4, 7, 6), dtype=torch.uint8)
w = torch.randint(-128, 128, (6, 2, 3, 3), dtype=torch.int8)
bias = torch.randint(-5000, 5000, (6,), dtype=torch.int32)
zero, zeros, out_zero = torch.tensor(120, dtype=torch.uint8), torch.arange(-3, 3, dtype=torch.int8), torch.tensor(131, dtype=torch.uint8)
scale, scales, out_scale = torch.tensor(0.02), 0.001 * torch.arange(1, 7).float(), torch.tensor(0.037)
y = F.conv2d(x.double() - zero.double(), w.double() - zeros.double()[:, None, None, None], bias.double(), (2, 1), 1, groups=2)
y = (y * scale.double() * scales.double()[:, None, None] / out_scale.double()).round() + out_zero.double()
case('qlinear_conv', 'QLinearConv', dict(x=x, xs=scale, xz=zero, w=w, ws=scales, wz=zeros, ys=out_scale, yz=out_zero, b=bias),
     dict(y=y.clamp(0, 255).to(torch.uint8)), 17, held=('xs', 'xz', 'w', 'ws', 'wz', 'ys', 'yz', 'b'), group=2, pads=(1, 1, 1, 1), strides=(2, 1))

# ---- Where maxima stand: PyTorch counts within a volume, ONNX over all of the input.
x = torch.randn(2, 3, 7, 6, 5)
y, at = F.max_pool3d(x, (3, 2, 3), (2, 1, 2), (1, 0, 1), (1, 2, 1), return_indices=True)
case('max_pool_places', 'MaxPool', dict(x=x), dict(y=y, at=at + 210 * torch.arange(6).view(2, 3, 1, 1, 1)), 12, kernel_shape=(3, 2, 3),
     strides=(2, 1, 2), pads=(1, 0, 1, 1, 0, 1), dilations=(1, 2, 1))

# ---- Pictures of a batch read at places of their own, some of them beyond the edges ----

x, grid = rand(2, 3, 5, 4), 3 * torch.rand(2, 3, 6, 2) - 1.5
for mode, theirs, beyond, corners in ('linear', 'bilinear', 'zeros', 0), ('cubic', 'bicubic', 'reflection', 1), ('cubic', 'bicubic', 'zeros', 0), \
        ('nearest', 'nearest', 'border', 1):
    case(f'grid_sample_{mode}_{beyond}', 'GridSample', dict(x=x, grid=grid), dict(y=F.grid_sample(x, grid, theirs, beyond, corners == 1)), 20,
         mode=mode, padding_mode=beyond, align_corners=corners)

# ---- onnxruntime's attention ----


def positions(first, n):
    return torch.arange(first, first + n)


def grouped(name, q, k, v, heads_of, past=None, cos=None, window=0, cap=0, bias=None, packed=False, sinks=None, **attributes):
    """Causal attention whose heads of queries share those of keys; q, k, v [batch, places, features]."""
    n, groups = heads_of
    fed = dict(q=torch.cat((q, k, v), 2)) if packed else dict(q=q, k=k, v=v)
    b, s = q.shape[:2]
    p = 0 if past is None else past[0].shape[2]
    q, k, v = heads(q, n), heads(k, groups), heads(v, groups)
    if cos is not None:
        at = positions(p, s).expand(b, s)
        q, k = (rotate(x, cos[0][at], cos[1][at], attributes.get('rotary_interleaved', 0) == 1) for x in (q, k))
        attributes['do_rotary'] = 1
    if past is not None:
        k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
    seen = torch.ones(s, p + s).tril(p)
    if window:
        attributes['local_window_size'] = window
        seen = seen.triu(p - window + 1)
    if cap:
        attributes['softcap'] = cap
    y = attend(q, k, v, seen.bool(), cap=cap) if bias is None else attend(q, k, v, bias.masked_fill(seen == 0, -torch.inf))
    if sinks is not None:
        scores = q @ k.repeat_interleave(n // groups, 1).mT * q.shape[3] ** -0.5
        scores = torch.cat((scores.masked_fill(seen == 0, -torch.inf), sinks.view(1, n, 1, 1).expand(b, n, s, 1)), 3)
        y = scores.softmax(-1)[..., :-1] @ v.repeat_interleave(n // groups, 1)
    none = dict(k=None, v=None) if packed else {}
    empty = dict(past_k=None, past_v=None) if past is None else dict(past_k=past[0], past_v=past[1])
    lengths = dict(lengths=torch.full((b,), p + s - 1, dtype=torch.int32), total=torch.tensor(p + s, dtype=torch.int32))
    tables = {} if cos is None and bias is None and sinks is None else dict(cos=cos and cos[0], sin=cos and cos[1])
    more = dict(tables, ids=None, bias=bias) if bias is not None or sinks is not None else tables
    more = dict(more, sinks=sinks) if sinks is not None else more
    case(name, 'GroupQueryAttention', {**fed, **none, **empty, **lengths, **more}, dict(y=flat(y), now_k=k, now_v=v), 17, 'com.microsoft',
         ('lengths', 'total') + (('cos', 'sin') if cos else ()), num_heads=n, kv_num_heads=groups, **attributes)


q, k, v = rand(2, 6, 32), rand(2, 6, 16), rand(2, 6, 16)
grouped('microsoft_grouped', q, k, v, (4, 2))
grouped('microsoft_grouped_window', q, k, v, (4, 2), window=3, cap=2.0)
grouped('microsoft_grouped_bias', q, k, v, (4, 2), bias=rand(2, 4, 6, 6))
grouped('microsoft_grouped_sinks', q, k, v, (4, 2), sinks=rand(4))
q, k, v = rand(2, 6, 64), rand(2, 6, 32), rand(2, 6, 32)
past = rand(2, 2, 3, 16), rand(2, 2, 3, 16)
angles = torch.outer(torch.arange(9.), 10. ** -torch.arange(0, 1, 0.125))
turning = angles.cos(), angles.sin()
grouped('microsoft_grouped_rotary', q, k, v, (4, 2), cos=turning)
grouped('microsoft_grouped_packed', q, k, v, (4, 2), cos=turning, packed=True, rotary_interleaved=1)
grouped('microsoft_grouped_past', q[:, :1], k[:, :1], v[:, :1], (4, 2), past=past, cos=turning)

q, k, v = rand(2, 4, 24), rand(2, 6, 24), rand(2, 6, 36)
bias = rand(24 + 24 + 36)
parts = bias.split((24, 24, 36))
wide = [heads(x + part, 3) for x, part in zip((q, k, v), parts)]
seen = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], dtype=torch.int32)
low = -10000. * (1 - seen[:, None, None].float())
more = rand(2, 3, 4, 6)
case('microsoft_heads', 'MultiHeadAttention', dict(q=q, k=k, v=v, bias=bias, seen=seen), dict(y=flat(attend(*wide, low))), 17, 'com.microsoft',
     num_heads=3)
case('microsoft_heads_bias', 'MultiHeadAttention', dict(q=q, k=k, v=v, bias=None, mask=None, more=more),
     dict(y=flat(attend(heads(q, 3), heads(k, 3), heads(v, 3), more))), 17, 'com.microsoft', num_heads=3)
k, v = rand(2, 3, 6, 8), rand(2, 3, 6, 8)
case('microsoft_heads_cross', 'MultiHeadAttention', dict(q=q, k=k, v=v), dict(y=flat(attend(heads(q, 3), k, v))), 17, 'com.microsoft', num_heads=3)
all = rand(2, 5, 3, 3, 8)
case('microsoft_heads_packed', 'MultiHeadAttention', dict(q=all), dict(y=flat(attend(*(all[:, :, :, i].transpose(1, 2) for i in range(3)), scale=0.2))), 17,
     'com.microsoft', num_heads=3, scale=0.2)
past_k, past_v = rand(2, 3, 2, 8), rand(2, 3, 2, 8)
q, k, v = rand(2, 4, 24), rand(2, 4, 24), rand(2, 4, 24)
now_k, now_v = torch.cat((past_k, heads(k, 3)), 2), torch.cat((past_v, heads(v, 3)), 2)
case('microsoft_heads_past', 'MultiHeadAttention', dict(q=q, k=k, v=v, bias=None, mask=None, more=None, past_k=past_k, past_v=past_v),
     dict(y=flat(attend(heads(q, 3), now_k, now_v, causal=True)), now_k=now_k, now_v=now_v), 17, 'com.microsoft', num_heads=3, unidirectional=1)

x, w, b = rand(2, 5, 16), 0.3 * rand(16, 24 + 24 + 12), rand(60)
wide = [heads(part, 3) for part in (x @ w + b).split((24, 24, 12), 2)]
seen = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.int32)
low = -10000. * (1 - seen[:, None, None].float())
same = dict(num_heads=3, qkv_hidden_sizes=(24, 24, 12))
case('microsoft_attention', 'Attention', dict(x=x, w=w, b=b, seen=seen), dict(y=flat(attend(*wide, low))), 17, 'com.microsoft', ('w', 'b'), **same)
case('microsoft_attention_lengths', 'Attention', dict(x=x, w=w, b=b, seen=seen.sum(1, dtype=torch.int32)), dict(y=flat(attend(*wide, low))), 17,
     'com.microsoft', ('w', 'b'), **same)
w, b, past = 0.3 * rand(16, 72), rand(72), rand(2, 2, 3, 4, 8)
q, k, v = (heads(part, 3) for part in (x @ w + b).chunk(3, 2))
now = torch.stack((torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)))
case('microsoft_attention_past', 'Attention', dict(x=x, w=w, b=b, mask=None, past=past), dict(y=flat(attend(q, *now, causal=True)), now=now), 17,
     'com.microsoft', ('w', 'b'), num_heads=3, unidirectional=1)
lengths, q, k, v = torch.tensor([3, 6]), rand(2, 3, 4, 8), rand(2, 3, 6, 8), rand(2, 3, 6, 10)
case('attention_lengths', 'Attention', dict(q=q, k=k, v=v, mask=None, past_k=None, past_v=None, lengths=lengths),
     dict(y=attend(q, k, v, (torch.arange(6) < lengths[:, None])[:, None, None])), 24)

# ---- onnxruntime's products, matrices of few bits, embeddings ----

a, b = rand(2, 3, 4, 5), rand(2, 3, 6, 5)
case('microsoft_fused_product', 'FusedMatMul', dict(a=a, b=b), dict(y=0.25 * a @ b.mT), 17, 'com.microsoft', alpha=0.25, transB=1)
x, w, b, z = rand(2, 4, 7, 6), rand(6, 4, 3, 3), rand(6), rand(2, 6, 7, 6)
case('microsoft_fused_convolution', 'FusedConv', dict(x=x, w=w, b=b, z=z), dict(y=F.relu(F.conv2d(x, w, b, padding=1) + z)), 17, 'com.microsoft', ('w', 'b'),
     pads=(1, 1, 1, 1), activation='Relu')


def few_bits(bits, rows, columns, block, zeros):
    """Numbers, scales and zeros as the file has them, and the matrix."""
    n, each = -(-columns // block), 8 // bits
    numbers, scales = torch.randint(0, 1 << bits, (rows, n * block)), 0.1 + 0.1 * torch.rand(rows, n)
    zero = torch.randint(0, 1 << bits, (rows, n)) if zeros else torch.full((rows, n), 1 << bits - 1)

    def pack(x):
        x = F.pad(x, (0, -x.shape[1] % each)).unflatten(1, (-1, each))
        return sum(x[..., i] << bits * i for i in range(each)).to(torch.uint8)
    matrix = ((numbers.unflatten(1, (n, block)) - zero[..., None]) * scales[..., None]).flatten(1)[:, :columns]
    return pack(numbers).view(rows, n, -1), scales, pack(zero), matrix


x = rand(2, 3, 40)
for bits, columns, zeros in ((4, 40, False), (4, 40, True), (8, 40, True), (2, 48, True)):
    x = rand(2, 3, columns)
    w, scales, zero, matrix = few_bits(bits, 12, columns, 16, zeros)
    fed = dict(x=x, w=w, s=scales, **(dict(z=zero.flatten()) if zeros else {}))
    case(f'microsoft_bits_{bits}{"_zeros" if zeros else ""}', 'MatMulNBits', fed, dict(y=x @ matrix.T), 17, 'com.microsoft', tuple(fed)[1:], K=columns, N=12,
         bits=bits, block_size=16)
w, scales, zero, matrix = few_bits(4, 10, 32, 16, True)
ids = torch.randint(0, 10, (2, 5))
case('microsoft_bits_rows', 'GatherBlockQuantized', dict(w=w.flatten(1), ids=ids, s=scales, z=zero), dict(y=matrix[ids]), 21, 'com.microsoft', ('w', 's', 'z'),
     bits=4, block_size=16, quantize_axis=1, gather_axis=0)
ids, segments, mask = torch.randint(0, 9, (2, 5), dtype=torch.int32), torch.randint(0, 2, (2, 5), dtype=torch.int32), (seen > 0).int()
words, places, kinds, scale, shift = rand(9, 8), rand(7, 8), rand(2, 8), rand(8), rand(8)
y = F.layer_norm(words[ids.long()] + places[:5] + kinds[segments.long()], (8,), scale, shift, 1e-12)
case('microsoft_embed_norm', 'EmbedLayerNormalization', dict(ids=ids, segments=segments, words=words, places=places, kinds=kinds, scale=scale, shift=shift,
     seen=mask), dict(y=y, lengths=mask.sum(1, dtype=torch.int32)), 17, 'com.microsoft', ('words', 'places', 'kinds', 'scale', 'shift'))

# ---- Written out: what PyTorch 1.13 exports to operators of version 14, which has neither Gelu nor LayerNormalization ----


class WrittenOut(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rows, self.maps = torch.nn.LayerNorm(6), torch.nn.LayerNorm((5, 6), 1e-3)
        for part in self.parameters():
            torch.nn.init.normal_(part)

    def forward(self, x):
        y = F.gelu(self.rows(x))
        z = 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * torch.pow(y, 3))))
        return self.maps(x + z) + F.gelu(z, approximate='tanh')


x = rand(2, 5, 6)
net = WrittenOut()
folder = os.path.join(sys.argv[1], 'written_out')
os.makedirs(os.path.join(folder, 'test_data_set_0'), exist_ok=True)
torch.onnx.export(net, x, os.path.join(folder, 'model.onnx'), opset_version=14, input_names=['x'], output_names=['y'], do_constant_folding=False)
for name, value in ('input_0', tensor('x', x)), ('output_0', tensor('y', net(x).detach())):
    open(os.path.join(folder, 'test_data_set_0', f'{name}.pb'), 'wb').write(value)

# Numbers that say shapes, kept in another file as those that weights are kept in, which exports of large models do with all.
x = torch.randn(2, 3, 4)
case('pad_stored_beside', 'Pad', {'x': x, 'pads': torch.tensor([0, 1, 0, 0, 0, 2]), 'value': torch.tensor(1.5)},
     {'y': F.pad(x, (0, 2, 1, 0), value=1.5)}, beside=('pads', 'value'))
case('reduce_stored_beside', 'ReduceSum', {'x': x, 'axes': torch.tensor([0, 2])}, {'y': x.sum((0, 2))}, beside=('axes',), keepdims=0)
