#include "store_list.hpp"

#include "describe.hpp"
#include "units.hpp"

namespace esker::cli {

std::vector<ListedStore> list_home() {
  std::vector<ListedStore> stores;
  for (StorePlace& place : stores_in_home()) {
    ListedStore store{std::move(place), std::nullopt, {}};
    if (auto info = inspect(store.place.path)) {
      store.info = std::move(*info);
    } else {
      store.problem = std::move(info.error().message);
    }
    stores.push_back(std::move(store));
  }
  return stores;
}

std::uint64_t disk_bytes(const std::vector<ListedStore>& stores) {
  std::uint64_t sum = 0;
  for (const ListedStore& store : stores) sum += store.info ? store.info->disk_bytes : 0;
  return sum;
}

Table store_table(const std::vector<ListedStore>& stores, const Output& out) {
  Table table{{{"STORE"}, {"MODEL"}, {"SIZE", true}, {"CAPACITY", true}, {"LAST USED"}}, {}};
  for (const ListedStore& store : stores) {
    if (!store.info) {
      table.rows.push_back({store.place.label, {"unreadable", Tint::bad}, "", "", store.problem});
      continue;
    }
    const Info& info = *store.info;
    const Tint tint = info.model.unnamed() ? Tint::dim : Tint::none;
    table.rows.push_back({store.place.label,
                          {model_line(info.model), tint},
                          out.size(info.disk_bytes),
                          out.size(info.capacity_bytes),
                          format_age(last_used(info))});
  }
  return table;
}

List store_values(const std::vector<ListedStore>& stores) {
  List list;
  for (const ListedStore& store : stores) {
    Object entry{{"store", store.place.label}, {"path", store.place.path}};
    if (store.info) {
      entry.emplace_back("model", model_value(store.info->model));
      entry.emplace_back("disk_bytes", store.info->disk_bytes);
      entry.emplace_back("capacity_bytes", store.info->capacity_bytes);
      entry.emplace_back("last_used", time_value(last_used(*store.info)));
    } else {
      entry.emplace_back("problem", store.problem);
    }
    list.emplace_back(std::move(entry));
  }
  return list;
}

}  // namespace esker::cli
