#include "unit/archive_support.hpp"

using namespace esker;
using namespace esker::test;

namespace {

NodeTable table_of(const Sample& sample) {
  NodeTable table(sample.head.geometry.block_tokens,
                  static_cast<std::uint32_t>(sample.namespaces.size()));
  for (const ArchiveSpan& span : sample.spans) REQUIRE(table.add(span, Errc::corrupt, "sample"));
  return table;
}

std::vector<std::int32_t> ids(std::int32_t first, std::int32_t from, std::int32_t to) {
  std::vector<std::int32_t> out;
  for (std::int32_t i = from; i < to; ++i) out.push_back(first + 3 * i);
  return out;
}

}  // namespace

TEST_CASE("a table tells tokens and path of every node", "[archive]") {
  const Sample sample = small_sample();
  const NodeTable table = table_of(sample);
  REQUIRE(table.size() == 12);
  CHECK(table.tokens_of(3) == ids(100, 0, 13));
  CHECK(table.path_to(3) == std::vector<std::uint32_t>{0, 1, 2, 3});
  auto branch = ids(100, 0, 12);
  for (const std::int32_t id : ids(500, 12, 18)) branch.push_back(id);
  CHECK(table.tokens_of(9) == branch);
  CHECK(table.path_to(9) == std::vector<std::uint32_t>{0, 1, 2, 8, 9});
  CHECK(table.tokens_of(6).empty());
}

TEST_CASE("a table finds the longest stored beginning, exact to the token", "[archive]") {
  const Sample sample = small_sample();
  const NodeTable table = table_of(sample);
  const auto match = [&](std::vector<std::int32_t> prompt, std::uint32_t name_space) {
    const auto found = table.match(prompt, name_space);
    return std::pair(found.tokens, found.nodes.empty() ? no_node : found.nodes.back());
  };
  CHECK(match(ids(100, 0, 100), 0) == std::pair(13U, 3U));
  CHECK(match(ids(100, 0, 12), 0) == std::pair(12U, 2U));
  CHECK(match(ids(100, 0, 10), 0) == std::pair(10U, 2U));
  CHECK(match(ids(100, 0, 100), 1) == std::pair(8U, 5U));
  CHECK(match(ids(100, 0, 100), 2) == std::pair(0U, no_node));
  CHECK(match(ids(100, 0, 100), 9) == std::pair(0U, no_node));
  CHECK(match({}, 0) == std::pair(0U, no_node));
  auto branch = ids(100, 0, 12);
  for (const std::int32_t id : ids(500, 12, 17)) branch.push_back(id);
  branch.push_back(-1);
  CHECK(match(branch, 0) == std::pair(17U, 9U));
}

TEST_CASE("a table can forget its last nodes and take them again", "[archive]") {
  SampleBuilder builder(geometry_of(1, 2, 2, 1));
  std::vector<std::uint32_t> starts;
  for (std::int32_t i = 0; i < 40; ++i) {
    builder.new_span();
    builder.chain(no_node, 0, 100, 0, i * 1000);
  }
  const Sample& sample = builder.sample();
  NodeTable table(1, 1);
  for (const ArchiveSpan& span : sample.spans) {
    REQUIRE(table.add(span, Errc::corrupt, "sample"));
    table.drop_from(span.first_node + 50);
    table.drop_from(span.first_node);
    CHECK(table.size() == span.first_node);
    REQUIRE(table.add(span, Errc::corrupt, "sample"));
  }
  for (std::uint32_t node = 0; node < table.size(); ++node) {
    const auto& at = table.at(node);
    CHECK(table.child(at.parent, 0, BlockKind::tokens, table.label(node)) == node);
  }
  CHECK(table.size() == 4000);
  table.drop_from(0);
  CHECK(table.size() == 0);
  CHECK(table.first_child(no_node, 0) == no_node);
}

TEST_CASE("a span with one bad node is taken not at all", "[archive]") {
  Sample sample = small_sample();
  NodeTable table = table_of(sample);
  ArchiveSpan more{12, {}, 0};
  ArchiveNode node;
  node.tokens = 1;
  node.label.resize(4);
  more.nodes.push_back(node);
  node.name_space = 77;
  more.nodes.push_back(node);
  const auto done = table.add(more, Errc::invalid, "caller");
  REQUIRE(!done);
  CHECK(done.error().code == Errc::invalid);
  CHECK_THAT(done.error().message, contains("caller: node 13: name_space is 77"));
  CHECK(table.size() == 12);
  more.nodes.pop_back();
  CHECK(table.add(more, Errc::invalid, "caller"));
}

TEST_CASE("paths longer than positions can count are refused", "[archive]") {
  NodeTable table(1024, 1);
  ArchiveNode node;
  node.tokens = 1024;
  node.label.resize(4096);
  REQUIRE(table.add({0, {node}, 1024}, Errc::corrupt, "file"));
  ArchiveNode child = node;
  child.parent = 0;
  child.first_token = UINT32_MAX - 3;
  CHECK(!table.add({1, {child}, 1024}, Errc::corrupt, "file"));
}

TEST_CASE("chains of a span are its runs of children", "[archive]") {
  const Sample sample = small_sample();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  for (const ArchiveChain& chain : chains_of(sample.spans[0])) {
    found.emplace_back(chain.begin, chain.end);
  }
  CHECK(found ==
        std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 4}, {4, 6}, {6, 7}, {7, 8}});
  CHECK(chains_of({}).empty());
}

TEST_CASE("a writer refuses what a reader would refuse", "[archive]") {
  const Sample sample = small_sample();
  MemorySink sink;
  auto writer = ArchiveWriter::start(sink, sample.head, sample.namespaces, {});
  REQUIRE(writer);
  ArchiveSpan span = sample.spans[0];
  span.nodes[1].parent = 1;
  CHECK(writer->span(span, rows_of(sample, span)).error().code == Errc::invalid);
  span = sample.spans[0];
  span.rows = 3;
  CHECK(!writer->span(span, rows_of(sample, span)));
  CHECK(!writer->span(sample.spans[1], rows_of(sample, sample.spans[1])));
  CHECK(!writer->span({}, rows_of(sample, span)));
  SessionWithStates session = sample.sessions[0];
  session.session.name_space = 9;
  CHECK(!writer->session(session.session, session.states));
  session = sample.sessions[0];
  session.states[1].position = 5;
  CHECK(!writer->session(session.session, session.states));
  session = sample.sessions[0];
  session.states[1].label = session.states[0].label;
  CHECK(!writer->session(session.session, session.states));
  session.session.name = "";
  CHECK(!writer->session(session.session, {}));
  // None of it has left a trace.
  for (const ArchiveSpan& good : sample.spans) REQUIRE(writer->span(good, rows_of(sample, good)));
  CHECK(writer->next_node() == 12);
  for (const SessionWithStates& good : sample.sessions) {
    REQUIRE(writer->session(good.session, good.states));
  }
  CHECK(!writer->session(sample.sessions[0].session, {}));
  ArchiveSpan late{12, {sample.spans[0].nodes[0]}, 4};
  CHECK(!writer->span(late, rows_of(sample, late)));
  REQUIRE(writer->finish());
  CHECK(!writer->finish());
  CHECK((sink.bytes == bytes_of(sample)));
}

TEST_CASE("a span whose rows cannot be read leaves no trace, and can be written without them",
          "[archive]") {
  const Sample sample = small_sample();
  for (const std::uint32_t threads : {1U, 4U}) {
    MemorySink sink;
    auto writer = ArchiveWriter::start(sink, sample.head, sample.namespaces,
                                       {{Compression::lz4, 0, Lossy::none}, threads});
    REQUIRE(writer);
    const RowReader gone = [](std::size_t plane, std::uint32_t, std::span<std::byte>) {
      if (plane < 2) return Result<void>();
      return Result<void>(tl::make_unexpected(Error{Errc::missing, 0, "evicted"}));
    };
    const auto before = sink.bytes;
    const auto done = writer->span(sample.spans[0], gone);
    REQUIRE(!done);
    CHECK(done.error().message == "evicted");
    CHECK((sink.bytes == before));
    CHECK(writer->next_node() == 0);
    for (const ArchiveSpan& span : sample.spans) REQUIRE(writer->span(span, rows_of(sample, span)));
    for (const SessionWithStates& one : sample.sessions) {
      REQUIRE(writer->session(one.session, one.states));
    }
    REQUIRE(writer->finish());
    CHECK((sink.bytes == bytes_of(sample)));
  }
}

TEST_CASE("tenants' names stand in portable files as digests only", "[archive]") {
  std::array<std::uint8_t, 16> salt{};
  salt.fill(3);
  for (const std::string name : {"", "lora=x", "model=y"}) {
    CHECK(is_public_namespace(name));
    const auto kept = archived_namespace(name, SnapshotUse::portable, salt);
    REQUIRE(kept);
    CHECK(kept->named);
    CHECK(kept->bytes == name);
  }
  for (const std::string name : {"tenant", "Lora=x", "lora", " model=y"}) {
    CHECK(!is_public_namespace(name));
    const auto hidden = archived_namespace(name, SnapshotUse::portable, salt);
    REQUIRE(hidden);
    CHECK(!hidden->named);
    CHECK(hidden->bytes.size() == 16);
    CHECK(archived_namespace(name, SnapshotUse::cold, salt)->bytes == name);
  }
  const auto digest = namespace_digest("tenant", salt);
  REQUIRE(digest);
  CHECK(*digest == *namespace_digest("tenant", salt));
  CHECK(*digest != *namespace_digest("tenanu", salt));
  salt[0] = 4;
  CHECK(*digest != *namespace_digest("tenant", salt));
}

TEST_CASE("a writer refuses namespaces that a portable file must not have", "[archive]") {
  const Sample sample = small_sample();
  MemorySink sink;
  const auto start = [&](std::vector<ArchiveNamespace> namespaces, SnapshotUse use) {
    SnapshotHead head = sample.head;
    head.use = use;
    return ArchiveWriter::start(sink, head, namespaces, {}).has_value();
  };
  CHECK(start({{true, "lora=x"}}, SnapshotUse::portable));
  CHECK(!start({{true, "tenant"}}, SnapshotUse::portable));
  CHECK(start({{true, "tenant"}}, SnapshotUse::cold));
  CHECK(!start({{false, std::string(16, 'x')}}, SnapshotUse::cold));
  CHECK(start({{false, std::string(16, 'x')}}, SnapshotUse::portable));
  CHECK(!start({{false, "short"}}, SnapshotUse::portable));
  CHECK(!start({{true, ""}, {true, ""}}, SnapshotUse::portable));
  CHECK(!start({{true, std::string(65, 'x')}}, SnapshotUse::cold));
}
