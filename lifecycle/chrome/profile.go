package chrome

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
	"cdpmux/lifecycle/proc"
)

// prepareProfile makes a profile directory fit for a launch and returns its
// real path. The caller holds the store's lock.
func prepareProfile(dir string, forgetSessionCookies bool) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", profileFailure(dir, err)
	}
	if err := lifecycle.CheckWritable(dir); err != nil {
		return "", profileFailure(dir, err)
	}
	dir, err := CheckProfile(dir)
	if err != nil {
		return "", err
	}
	if err := os.Remove(filepath.Join(dir, keeper.ActivePort)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", profileFailure(dir, err)
	}
	if err := keepSessionCookies(dir, !forgetSessionCookies); err != nil {
		return "", profileFailure(dir, err)
	}
	return dir, nil
}

// CheckProfile says whether Chrome could run on a profile directory, and
// returns its real path, also with a failure of kind profile_in_use. It changes
// nothing. The error is an fs.ErrNotExist when there is no such directory.
func CheckProfile(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err == nil {
		err = lifecycle.MayWrite(real)
	}
	if err != nil {
		return "", profileFailure(dir, err)
	}
	dir = real
	if isDefaultProfile(dir) {
		return "", &lifecycle.Failure{
			Kind: lifecycle.ProfileInvalid,
			Text: dir + " is the default profile of a user's Chrome, which takes no debugging",
			Hint: "leave --profile out, or give another directory",
		}
	}
	// Chrome itself asks a hung owner of the profile for 20 s, then kills it.
	// On systems that cannot list processes, Chrome's own lock must do.
	if users, err := proc.UsersOf(dir); err == nil && len(users) > 0 {
		return dir, &lifecycle.Failure{
			Kind: lifecycle.ProfileInUse,
			Text: fmt.Sprintf("the profile %s is in use by pid %d", dir, users[0].PID),
			Hint: fmt.Sprintf("close that Chrome (kill -INT %d keeps its logins), or choose another directory with --profile", users[0].PID),
		}
	}
	return dir, nil
}

func profileFailure(dir string, err error) error {
	kind := lifecycle.ProfileInvalid
	// A read-only file system denies as much as a mode does.
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		kind = lifecycle.ProfileDenied
	}
	return &lifecycle.Failure{
		Kind: kind,
		Text: fmt.Sprintf("profile %s: %v", dir, err),
		Hint: "give a directory that this user can write to with --profile",
	}
}

// isDefaultProfile reports whether dir is where a user's own Chrome keeps its
// data; Chrome 136 and later open no debugging port there.
func isDefaultProfile(dir string) bool {
	var roots []string
	if config, err := os.UserConfigDir(); err == nil {
		roots = append(roots, config)
	}
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, ".config"))
	}
	for _, root := range roots {
		for _, name := range []string{"google-chrome", "google-chrome-beta", "google-chrome-unstable", "chromium", "Google/Chrome", "Chromium"} {
			if path, err := filepath.EvalSymlinks(filepath.Join(root, name)); err == nil && path == dir {
				return true
			}
		}
	}
	return false
}

// continueSession is Chrome's "continue where you left off". With it, session
// cookies outlive a clean stop.
const continueSession = "1"

// keepSessionCookies merges session.restore_on_startup into the profile's
// Preferences, or takes our value out again. Everything else stays as it is.
func keepSessionCookies(profile string, keep bool) error {
	path := filepath.Join(profile, "Default", "Preferences")
	prefs, session := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case json.Unmarshal(b, &prefs) != nil:
		return nil // Chrome repairs its own file
	}
	if s, ok := prefs["session"]; ok && json.Unmarshal(s, &session) != nil {
		return nil
	}
	const key = "restore_on_startup"
	if kept := string(session[key]) == continueSession; kept == keep {
		return nil
	}
	delete(session, key)
	if keep {
		session[key] = json.RawMessage(continueSession)
	}
	if prefs["session"], err = json.Marshal(session); err != nil {
		return err
	}
	if b, err = json.Marshal(prefs); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return lifecycle.WriteFile(path, b)
}
