// What ways of serving calls keep with a communicator, by type: as MPI's own attributes, but without handles.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace palmette::runtime {

class KeptState {
  public:
    virtual ~KeptState() = default;
    /// Collective: the communicator is freed, or the MPI ends.
    virtual void leave() {}
};

/// At most one of each type.
class KeptByWays {
  public:
    /// Null: nothing of that type is kept. Cost: a comparison for each that is.
    template <class Type>
    Type* find() const {
        for (const Entry& entry : entries_)
            if (entry.key == &key<Type>) return static_cast<Type*>(entry.kept.get());
        return nullptr;
    }
    template <class Type>
    Type& add(std::unique_ptr<Type> made) {
        entries_.push_back({&key<Type>, std::move(made)});
        return static_cast<Type&>(*entries_.back().kept);
    }
    /// Makes it where it isn't kept yet.
    template <class Type>
    Type& get() {
        Type* const found = find<Type>();
        return found ? *found : add(std::make_unique<Type>());
    }
    template <class Type>
    void drop() {
        std::erase_if(entries_, [](const Entry& entry) { return entry.key == &key<Type>; });
    }
    /// Collective.
    void leave() {
        for (const Entry& entry : entries_) entry.kept->leave();
    }

  private:
    template <class Type>
    static constexpr char key = 0;  ///< its address tells types apart
    struct Entry {
        const char* key;
        std::unique_ptr<KeptState> kept;
    };
    std::vector<Entry> entries_;
};

}  // namespace palmette::runtime
