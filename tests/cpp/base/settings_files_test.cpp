#include "palmette/base/settings_files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace palmette::base {
namespace {

constexpr std::array<DeclaredSetting, 4> declared{DeclaredSetting{"PALMETTE_WAIT", "choice", "auto mpi poll", true, ""},
                                                  {"PALMETTE_TABLE", "path", "", true, ""},
                                                  {"PALMETTE_TRACE", "path", "", false, ""},
                                                  {"PALMETTE_OLD", "", "", true, "PALMETTE_WAIT"}};

class SettingsFilesTest : public testing::Test {
  protected:
    SettingsFilesTest() {
        std::filesystem::remove_all(folder);
        std::filesystem::create_directories(folder + "/etc/palmette");
        std::filesystem::create_directories(folder + "/config/palmette");
        setenv("XDG_CONFIG_HOME", (folder + "/config").c_str(), 1);
    }
    ~SettingsFilesTest() override {
        unsetenv("XDG_CONFIG_HOME");
        std::filesystem::remove_all(folder);
    }
    void put(const std::string& name, const std::string& text) const { std::ofstream(folder + name) << text; }

    std::string folder = testing::TempDir() + "palmette_settings_files_" + std::to_string(getpid());
};

TEST_F(SettingsFilesTest, a_users_line_counts_over_the_sites_and_tells_its_place) {
    put("/etc/palmette/settings", "# for all\nPALMETTE_WAIT=poll\n");
    put("/etc/palmette/table.json", "{}");
    const SettingsFiles site = read_settings_files("", folder + "/lib/libpalmette_mpich.so", declared);
    EXPECT_EQ(site.values.at("PALMETTE_WAIT").text, "poll");
    EXPECT_EQ(site.values.at("PALMETTE_WAIT").where, folder + "/etc/palmette/settings:2");
    EXPECT_EQ(site.values.at("PALMETTE_TABLE").text, folder + "/etc/palmette/table.json");
    put("/config/palmette/settings", "PALMETTE_WAIT=mpi\n");
    const SettingsFiles both = read_settings_files(folder + "/etc/palmette", "", declared);
    EXPECT_EQ(both.values.at("PALMETTE_WAIT").where, folder + "/config/palmette/settings:1");
    EXPECT_TRUE(both.mistakes.empty());
}

TEST_F(SettingsFilesTest, a_bad_line_has_no_effect_and_the_others_do) {
    put("/etc/palmette/settings", "PALMETTE_WAIT=now\nPALMETTE_TRACE=/x\nPALMETTE_OLD=1\nPALMETTE_TABLE=/t.json\nx\n");
    const SettingsFiles found = read_settings_files(folder + "/etc/palmette", "", declared);
    EXPECT_EQ(found.mistakes.size(), 4U);
    EXPECT_EQ(found.mistakes.front(), folder +
                                          "/etc/palmette/settings:1: PALMETTE_WAIT=now: expected auto, mpi or poll; "
                                          "correct or remove the line");
    EXPECT_EQ(found.values.size(), 1U);
}

TEST(ForcedAlgorithms, are_split_at_semicolons_and_need_a_known_function_each) {
    const auto parts = forced_algorithms(" gather=leaders:leaders=2,between=linear; bcast = mpi;");
    ASSERT_EQ(parts.size(), 2U);
    EXPECT_EQ(parts[0].function, "gather");
    EXPECT_EQ(parts[0].algorithm, "leaders:leaders=2,between=linear");
    EXPECT_EQ(parts[1].function, "bcast");
    EXPECT_EQ(parts[1].algorithm, "mpi");
    const auto refused = [](const char* text) { return !expected_instead("force", "gather bcast", text).empty(); };
    EXPECT_FALSE(refused("gather=linear;bcast=mpi"));
    for (const char* bad : {"gather", "gather=", "scan=linear", ";", "gather=linear;bcast"})
        EXPECT_TRUE(refused(bad)) << bad;
}

TEST(Expected, a_device_is_a_path_and_what_the_mpi_takes) {
    for (const char* good : {"auto", "off", "ipc,mpi", "staging,no-mpi"})
        EXPECT_EQ(expected_instead("device", "", good), "") << good;
    for (const char* bad : {"gpu", "auto,", "mpi", ",mpi"}) EXPECT_NE(expected_instead("device", "", bad), "") << bad;
}

TEST_F(SettingsFilesTest, nothing_is_read_where_that_is_asked) {
    put("/config/palmette/settings", "PALMETTE_WAIT=mpi\n");
    EXPECT_TRUE(read_settings_files("0", folder + "/lib/x.so", declared).files.empty());
    EXPECT_EQ(read_settings_files("/none", "", declared).mistakes.size(), 1U);
}

}  // namespace
}  // namespace palmette::base
