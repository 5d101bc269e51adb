#pragma once

/// Esker: a memory-mapped, persistent, process-shared store for the KV cache of LLM inference.
/// What does not stand in include/esker/ is not API.
///
/// The tour:
///   Store        a directory of KV blocks for one geometry and one model id.   store.hpp
///   Prefix       the longest stored path for some tokens, pinned.              prefix.hpp
///   Reservation  room for what is missing; `publish` shares it.                reservation.hpp
///   Session      a named, durable chat over a store.                          session.hpp
///   KvCache      the engine's own cache, written token by token, in a file.    kv_cache.hpp
///   LayerCache   one layer for many threads.                                   layer_cache.hpp
///   BatchView    several of these sequences in one step.                       batch_view.hpp
///   Snapshot     a portable, compressed file of paths and sessions.            snapshot.hpp
///   HomeSettings what holds for all stores of a directory: budget, keep-free.  home.hpp
///   Geometry     bytes per token and layer; ModelId: what else must be equal.  geometry.hpp
///   Result<T>    a value or an Error; a miss and a full cache are no errors.   result.hpp
///   Stats, Info  what a store holds and what happened to it.                   stats.hpp
///
/// Read doc/caveats.md before you put a store on a network file system or call fork.

#include <esker/batch_view.hpp>
#include <esker/block_info.hpp>
#include <esker/geometry.hpp>
#include <esker/home.hpp>
#include <esker/kv_cache.hpp>
#include <esker/layer_cache.hpp>
#include <esker/options.hpp>
#include <esker/prefix.hpp>
#include <esker/reservation.hpp>
#include <esker/resize.hpp>
#include <esker/result.hpp>
#include <esker/session.hpp>
#include <esker/session_info.hpp>
#include <esker/snapshot.hpp>
#include <esker/snapshot_info.hpp>
#include <esker/stats.hpp>
#include <esker/store.hpp>
#include <esker/version.hpp>
