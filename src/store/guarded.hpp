#pragma once

#include "base/guarded.hpp"
