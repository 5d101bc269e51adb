#pragma once

/// Esker: a memory-mapped, persistent, process-shared store for the KV cache of LLM inference.
/// What does not stand in include/esker/ is not API.
///
/// The tour:
///   Store        a directory of KV blocks for one geometry and one model id.   store.hpp
///   Prefix       the longest stored path for some tokens, pinned.              prefix.hpp
///   Reservation  room for what is missing; `publish` shares it.                reservation.hpp
///   Geometry     bytes per token and layer; ModelId: what else must be equal.  geometry.hpp
///   Result<T>    a value or an Error; a miss and a full cache are no errors.   result.hpp
///   Stats, Info  what a store holds and what happened to it.                   stats.hpp
///
/// Read doc/caveats.md before you put a store on a network file system or call fork.

#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/prefix.hpp>
#include <esker/reservation.hpp>
#include <esker/result.hpp>
#include <esker/stats.hpp>
#include <esker/store.hpp>
#include <esker/version.hpp>
