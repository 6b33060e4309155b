#include "palmette/base/files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace palmette::base {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
  protected:
    void SetUp() override {
        folder = fs::temp_directory_path() / ("palmette-files-" + std::to_string(getpid()));
        fs::create_directory(folder);
    }
    void TearDown() override { fs::remove_all(folder); }
    static std::string read(const fs::path& path) {
        std::ostringstream out;
        out << std::ifstream(path).rdbuf();
        return out.str();
    }
    std::size_t entries() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
    }
    fs::path folder;
};

TEST_F(Files, are_replaced_whole_with_their_mode_and_through_a_link) {
    const fs::path file = folder / "a", link = folder / "link";
    EXPECT_TRUE(replace_file(file.string(), "old"));
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    fs::create_symlink(file, link);
    EXPECT_TRUE(replace_file(link.string(), "new"));
    EXPECT_EQ(read(file), "new");
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(entries(), 2U) << "nothing is left beside them";
}

TEST_F(Files, that_cant_be_written_leave_nothing) {
    EXPECT_FALSE(replace_file((folder / "missing" / "a").string(), "text"));
    EXPECT_FALSE(replace_file(folder.string(), "text"));
    EXPECT_EQ(entries(), 0U);
}

}  // namespace
}  // namespace palmette::base
