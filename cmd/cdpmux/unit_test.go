package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unitKeys are the settings that the unit has, section by section, and nothing
// else: a name that is spelled wrong is one that systemd ignores.
var unitKeys = map[string][]string{
	"Unit": {"Description", "Documentation", "After", "StartLimitIntervalSec", "StartLimitBurst"},
	"Service": {
		"Type", "NotifyAccess", "User", "Group", "Environment", "EnvironmentFile", "ExecStart", "StateDirectory",
		"StateDirectoryMode", "RuntimeDirectory", "RuntimeDirectoryMode", "RuntimeDirectoryPreserve", "UMask",
		"TimeoutStartSec", "WatchdogSec", "KillMode", "TimeoutStopSec", "Delegate", "OOMPolicy", "Restart", "RestartSec",
		"RestartPreventExitStatus", "LimitCORE", "LimitNOFILE", "NoNewPrivileges", "RestrictSUIDSGID", "CapabilityBoundingSet",
		"AmbientCapabilities", "ProtectSystem", "ProtectHome", "PrivateTmp", "ProtectKernelTunables",
		"ProtectKernelModules", "ProtectKernelLogs", "ProtectHostname", "LockPersonality", "RestrictRealtime",
		"RestrictAddressFamilies",
	},
	"Install": {"WantedBy"},
}

const unitFile = "../../scripts/cdpmux@.service"

func TestUnit(t *testing.T) {
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	section, have := "", map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			section = strings.Trim(line, "[]")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if _, twice := have[key]; !ok || twice || !slices.Contains(unitKeys[section], key) {
			t.Errorf("line %q in section %s", line, section)
		}
		have[key] = value
	}
	for key, want := range map[string]string{ // what the product counts on
		"Type": "notify", "KillMode": "mixed", "TimeoutStopSec": "30", "Delegate": "yes",
		"RestartPreventExitStatus": "2 3", "StateDirectoryMode": "0700",
	} {
		if have[key] != want {
			t.Errorf("%s=%s, want %s", key, have[key], want)
		}
	}
	if !strings.Contains(have["Environment"], "GOTRACEBACK=crash") {
		t.Error("a panic would exit with 2, after which the unit is not started again")
	}
	// What would break Chrome's sandbox, or hide its cgroups.
	for _, key := range []string{"RestrictNamespaces", "MemoryDenyWriteExecute", "SystemCallFilter", "ProtectControlGroups"} {
		if value, there := have[key]; there {
			t.Errorf("%s=%s is there", key, value)
		}
	}
	args := strings.Fields(strings.ReplaceAll(have["ExecStart"], "%i", "shop"))
	if err := tryExample("cdpmux serve", strings.Join(append([]string{filepath.Base(args[0])}, args[1:]...), " ")); err != nil {
		t.Errorf("ExecStart=%s: %v", have["ExecStart"], err)
	}
}

// TestUnitVerified asks systemd itself. Where there is none, TestUnit has to do.
func TestUnitVerified(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Logf("no systemd-analyze: the unit was checked by its own list of settings alone (TestUnit)")
		return
	}
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(text string) string {
		path := filepath.Join(t.TempDir(), "cdpmux@.service")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), tool, "verify", "--man=no", "--recursive-errors=no", strings.Replace(path, "@", "@shop", 1))
		out, err := cmd.CombinedOutput()
		if err != nil && len(out) == 0 {
			return err.Error()
		}
		return string(out)
	}
	// The program is not installed here; any other will do.
	good := strings.Replace(string(text), "/usr/local/bin/cdpmux", "/bin/true", 1)
	if said := verify(good); said != "" {
		t.Errorf("systemd-analyze: %s", said)
	}
	if said := verify(strings.Replace(good, "Delegate=", "Delegtae=", 1)); !strings.Contains(said, "Delegtae") {
		t.Errorf("systemd-analyze does not see a wrong name: %q", said)
	}
}
