#!lua
-- Limits over all hosts: one bucket in Redis for each limit, or for each key of a limit. A host asks for bytes ahead of
-- need; what is granted is deducted here, at once, before anybody may spend it. So a lost, late or repeated message
-- never makes bytes.
--
-- Units: bytes, bits per second, microseconds of the clock of Redis; no host's clock comes in. All numbers are whole
-- and below 2^53, where a double is exact. They are kept as packed doubles: read and written as text, field by field,
-- they took half of the script's time.
--
-- KEYS     for each bucket two, at most 32 buckets with one hash tag: the bucket, its hosts.
-- ARGV     protocol, host, incarnation; for each bucket: cfg, R, B, interval, lease, seq, want, need, give_back, debt,
--          flags, own (as in LeaseAsk).
-- Returns  for each bucket: status, grant, tok, lam, contended, members, gen, cfg, R, B; after the last one the time.
--
-- The bucket, a string:  schema; cfg version of R and B; R rate; B depth; tok bytes in it, at most B; ts when it earned
--   last; rem what it earned beyond whole bytes, in millionths of a bit; gen when it was made. Found when the hosts were
--   last counted, at lt: lam water level, contended, members, lease the longest of theirs, kept rate kept for missing.
-- Its hosts, a hash, by host:  inc, seq, want, last, grant, lease, flags, own. inc is another number after each start of
--   the host, last when it asked, own its rate in fallback. A host that left stays a minute, to know what is repeated.
-- Leaky or token bucket: the level of the one is B - tok of the other.

local protocol = '1'
local schema = 1
local bucket_layout, bucket_bytes = '<Bddddddddddddd', 105
local host_layout, host_bytes = '<dddddddd', 64
local most_buckets = 32
local most_hosts = 512         -- in the table of one bucket; every loop below ends there
local count_every = 10000      -- the hosts are counted that often, so the cost of a call does not grow with them
local remembered = 60000000    -- a host that is silent for longer is forgotten
local least_ttl_ms = 60000
local byte = 8000000           -- a byte in millionths of a bit: the product of bits per second and microseconds
local inexact = 2 ^ 53
local slowest, fastest, deepest = 300, 400000000000, 2 ^ 30  -- as in core/units.h

-- As in LeaseAnswer::Status.
local granted, fresh, old_config, replay, stale, crowded, taken, foreign = 0, 1, 2, 3, 4, 5, 6, 7
local fallback_flag, leaving_flag, reserve_flag, tell_flag = 1, 2, 4, 16  -- 8, observe, is kept for those who look

local words_of_ask = 12

local function refuse(why) error({err = 'ERR grants: ' .. why}) end

local function has(flags, flag) return flags % (2 * flag) >= flag end

-- What `rate` brings in `time`, with `rest` from before: whole bytes, and the new rest. The rate is split, for at 400
-- Gbit/s the product passes 2^53 in 22 ms. After so long a time that even this one does, any bucket is full.
local function earned(rate, time, rest)
  local bytes_each_us = math.floor(rate / byte)
  local sum = (rate - bytes_each_us * byte) * time + rest
  rest = math.fmod(sum, byte)
  return bytes_each_us * time + (sum - rest) / byte, rest
end

-- Tables are written out, here and below: one that grows field by field costs more than all the arithmetic.
-- Nil if there is none, and whether another version of shaper has written it.
local function read_bucket(key)
  local packed = redis.call('GET', key)
  if not packed then return nil end
  if #packed ~= bucket_bytes or string.byte(packed) ~= schema then return nil, true end
  local _, cfg, R, B, tok, ts, rem, gen, lam, lt, contended, members, lease, kept = struct.unpack(bucket_layout, packed)
  return {cfg = cfg, R = R, B = B, tok = tok, ts = ts, rem = rem, gen = gen, lam = lam, lt = lt,
          contended = contended, members = members, lease = lease, kept = kept}
end

-- Half full: what was lost was hardly full, and an empty one would hold all hosts up.
local function new_bucket(ask, now)
  return {cfg = ask.cfg, R = ask.R, B = ask.B, tok = math.floor(ask.B / 2), ts = now, rem = 0, gen = now,
          lam = 0, lt = 0, contended = 0, members = 0, lease = 0, kept = 0}
end

local function read_host(record)
  if not record or #record ~= host_bytes then return nil end
  local inc, seq, want, last, grant, lease, flags, own = struct.unpack(host_layout, record)
  return {inc = inc, seq = seq, want = want, last = last, grant = grant, lease = lease, flags = flags, own = own}
end

local function pack_host(host)
  return struct.pack(host_layout, host.inc, host.seq, host.want, host.last, host.grant, host.lease, host.flags,
                     host.own)
end

-- What hosts have spent already goes down in full, else more than the rate would pass.
local function cap(bucket)
  bucket.tok = math.max(bucket.tok, -deepest)
  if bucket.tok >= bucket.B then bucket.tok, bucket.rem = bucket.B, 0 end
end

-- The bucket earns for the time since the last call. A clock that was set back earns nothing and is not waited for.
-- Where bytes were short and nobody called for a lease, Redis was away and the hosts had their fallback: no bytes for
-- that time. After true idleness bytes were not short.
local function settle(bucket, now, lease)
  local time = now - bucket.ts
  bucket.ts = now
  local outage = bucket.contended == 1 and time > math.max(lease, bucket.lease)
  if time > 0 and not outage then
    local bytes
    bytes, bucket.rem = earned(bucket.R - bucket.kept, time, bucket.rem)
    bucket.tok = bucket.tok + bytes
  end
  cap(bucket)
end

-- The newest version of rate and depth is in force for all; what the bucket earned up to now, it earned at the old
-- rate. Returns whether the host's version is in force.
local function adopt(bucket, ask)
  if ask.cfg <= bucket.cfg then return ask.cfg == bucket.cfg and ask.R == bucket.R and ask.B == bucket.B end
  bucket.cfg, bucket.R, bucket.B = ask.cfg, ask.R, ask.B
  bucket.lt = 0
  return true
end

-- Max-min fair shares of `rate`: the level that no want is served above, or nil when there is enough for all.
local function water_level(wants, rate)
  table.sort(wants)
  for i, want in ipairs(wants) do
    local share = rate / (#wants - i + 1)
    if want > share then return math.floor(share) end
    rate = rate - want
  end
  return nil
end

-- Whether a host is a member: it asked within its lease, and did not leave.
local function lives(host, now)
  return not has(host.flags, leaving_flag) and now - host.last <= host.lease
end

-- Counts a host's record. One that is silent, and did not leave, is missing.
local function count(found, host, now)
  if has(host.flags, leaving_flag) then return end
  if lives(host, now) then
    table.insert(found.wants, host.want)
    found.lease = math.max(found.lease, host.lease)
  else
    found.missing = found.missing + 1
    if has(host.flags, reserve_flag) then table.insert(found.reserves, host.own) end
  end
end

-- Goes through the hosts, with `asker` as it is now (nil: it does not count), and forgets the long silent ones.
local function find_hosts(key, name, asker, now)
  local found = {wants = {}, reserves = {}, missing = 0, lease = 0}
  if asker then count(found, asker, now) end
  local records = redis.call('HGETALL', key)
  local forgotten, moved = {}, {}
  for i = 1, #records, 2 do
    local host = read_host(records[i + 1])
    if not host or now - host.last > remembered then
      table.insert(forgotten, records[i])
    elseif records[i] ~= name then
      if host.last > now then  -- the clock was set back: it counts from now
        host.last = now
        table.insert(moved, records[i])
        table.insert(moved, pack_host(host))
      end
      count(found, host, now)
    end
  end
  if #forgotten > 0 then redis.call('HDEL', key, unpack(forgotten)) end
  if #moved > 0 then redis.call('HSET', key, unpack(moved)) end
  return found
end

-- Counts the hosts, and finds the water level. What is shared out is the rate, up to a quarter more from a full bucket
-- and a quarter less from an empty one, so that the bucket stays half full. Of `own` nothing said: an equal part.
local function count_hosts(bucket, key, name, asker, now)
  local found = find_hosts(key, name, asker, now)
  bucket.lt, bucket.members, bucket.lease = now, #found.wants, found.lease
  bucket.kept = 0
  for _, own in ipairs(found.reserves) do
    if own == 0 then own = math.floor(bucket.R / (bucket.members + found.missing)) end
    bucket.kept = math.min(bucket.R, bucket.kept + own)
  end
  local free = bucket.R - bucket.kept
  local tok = math.max(bucket.tok, -bucket.B)
  local level = water_level(found.wants, free * ((3 * bucket.B + 2 * tok) / (4 * bucket.B)))
  bucket.lam = level or free
  bucket.contended = level and 1 or 0
end

-- What `host` gets. With enough for all: what it needs. Else its share of the time since it asked, and half of what is
-- above the middle, where also goes what is rounded down here. `before` is its last ask; nil if there was none, or if it
-- has lived by its fallback since.
local function grant_to(host, bucket, ask, before)
  local covered = math.max(0, math.min(ask.need, bucket.tok))
  if bucket.contended == 0 then return covered end
  local time = before and math.min(host.last - before.last, 2 * ask.interval) or ask.interval
  local share = math.floor(math.min(host.want, bucket.lam) * math.max(time, 0) / byte)
  local surplus = math.max(0, math.floor((bucket.tok - math.floor(bucket.B / 2)) / 2))
  return math.min(covered, share + surplus)
end

-- Kept ten times as long as the bucket takes to fill: what expires was full, and comes back half full.
local function ttl_of(bucket) return math.max(least_ttl_ms, math.ceil(80000 * bucket.B / bucket.R)) end

local function write_bucket(key, b)
  local packed = struct.pack(bucket_layout, schema, b.cfg, b.R, b.B, b.tok, b.ts, b.rem, b.gen, b.lam, b.lt, b.contended,
                             b.members, b.lease, b.kept)
  redis.call('SET', key, packed, 'PX', ttl_of(b))
end

local function put(reply, status, grant, bucket)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = status, grant, bucket.tok, bucket.lam
  reply[n + 5], reply[n + 6], reply[n + 7] = bucket.contended, bucket.members, bucket.gen
  reply[n + 8], reply[n + 9], reply[n + 10] = bucket.cfg, bucket.R, bucket.B
end

-- The bucket as it is now, and whether it had to be made. A foreign one is left alone.
local function open_bucket(bucket_key, hosts_key, ask, now)
  local bucket, is_foreign = read_bucket(bucket_key)
  if is_foreign then return new_bucket(ask, now), foreign end
  if not bucket then
    redis.call('DEL', hosts_key)
    return new_bucket(ask, now), fresh
  end
  settle(bucket, now, ask.lease)
  return bucket, granted
end

-- The record that the asker leaves. None if it leaves and was not there: it only tells about the bucket, or has been
-- forgotten. None if there is no room.
local function new_record(ask, record, hosts_key, now)
  if not record then
    if has(ask.flags, leaving_flag) then return nil, granted end
    if redis.call('HLEN', hosts_key) >= most_hosts then return nil, crowded end
  end
  return {inc = ask.inc, seq = ask.seq, want = ask.want, last = now, grant = 0, lease = ask.lease, flags = ask.flags,
          own = ask.own}, granted
end

-- Tells all hosts that listen what one of them has spent, and that it is in the bucket as of `now`.
local function tell(bucket_key, ask, now)
  local tag, name = string.match(bucket_key, '^(dl:{%d+}:)(.*):b$')
  redis.call('PUBLISH', tag .. 'spent', string.format('%s %s %.0f %.0f', ask.host, name, ask.debt, now))
end

-- One ask about one bucket. A repeated or late one changes nothing. Of two hosts with one name each is to the other what
-- it was before a start: it gives nothing back, and what it asks for again is deducted again.
local function serve(bucket_key, hosts_key, ask, now, reply)
  local bucket, status = open_bucket(bucket_key, hosts_key, ask, now)
  if status == foreign then return put(reply, foreign, 0, bucket) end
  local record = redis.call('HGET', hosts_key, ask.host)
  local before = read_host(record)
  local other = before and before.inc ~= ask.inc and before
  if other then before = nil end
  if before and ask.seq == before.seq then return put(reply, replay, before.grant, bucket) end
  if before and ask.seq < before.seq then return put(reply, stale, 0, bucket) end

  if not adopt(bucket, ask) then status = old_config end
  if other and lives(other, now) then status = taken end
  -- A host that is not known holds nothing: what it gives back may have been counted already.
  bucket.tok = bucket.tok + (before and ask.give_back or 0) - ask.debt
  cap(bucket)
  if has(ask.flags, tell_flag) and ask.debt > 0 then tell(bucket_key, ask, now) end

  local host, room = new_record(ask, record, hosts_key, now)
  if room == crowded then status = crowded end
  local leaving = has(ask.flags, leaving_flag)
  local counted = leaving or now < bucket.lt or now - bucket.lt >= count_every
  if counted then count_hosts(bucket, hosts_key, ask.host, host, now) end
  if host and not leaving then
    host.grant = grant_to(host, bucket, ask, not has(ask.flags, fallback_flag) and before or nil)
    bucket.tok = bucket.tok - host.grant
  end

  write_bucket(bucket_key, bucket)
  if host then redis.call('HSET', hosts_key, ask.host, pack_host(host)) end
  if counted or not before then redis.call('PEXPIRE', hosts_key, ttl_of(bucket)) end  -- at most 10 ms late
  put(reply, status, host and host.grant or 0, bucket)
end

local function argument(i)
  local number = tonumber(ARGV[i])
  if not number or number < 0 or number >= inexact or number % 1 ~= 0 then
    refuse('argument ' .. i .. ' is out of range')
  end
  return number
end

local function read_ask(i)
  local ask = {host = ARGV[2], inc = argument(3), cfg = argument(i), R = argument(i + 1), B = argument(i + 2),
               interval = argument(i + 3), lease = argument(i + 4), seq = argument(i + 5), want = argument(i + 6),
               need = argument(i + 7), give_back = argument(i + 8), debt = argument(i + 9), flags = argument(i + 10),
               own = argument(i + 11)}
  if ask.R < slowest or ask.R > fastest then refuse('argument ' .. i + 1 .. ' is no rate') end
  if ask.B < 1 or ask.B > deepest then refuse('argument ' .. i + 2 .. ' is no depth') end
  return ask
end

local buckets = #KEYS / 2
if ARGV[1] ~= protocol then refuse('protocol ' .. protocol .. ' is spoken here') end
if #KEYS % 2 ~= 0 or buckets > most_buckets or #ARGV ~= 3 + words_of_ask * buckets then
  refuse('keys and arguments do not match')
end

-- All arguments are read before anything is written.
local asks = {}
for i = 1, buckets do asks[i] = read_ask(4 + words_of_ask * (i - 1)) end

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local reply = {}
for i, ask in ipairs(asks) do serve(KEYS[2 * i - 1], KEYS[2 * i], ask, now, reply) end
table.insert(reply, now)
return reply
