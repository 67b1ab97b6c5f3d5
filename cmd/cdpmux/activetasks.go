package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

var taskID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,60}$`)

// activeTasks reads the ids of --active-tasks. Anything else than ids is an
// error: with a wrong list, daemons at work would be ended.
func activeTasks(ctx context.Context, source string) ([]string, error) {
	if source == "" {
		return nil, nil
	}
	var text []byte
	var err error
	if command, ok := strings.CutPrefix(source, "@"); ok {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Stderr = os.Stderr
		cmd.WaitDelay = time.Second // for a child that keeps its output open
		text, err = cmd.Output()
	} else {
		text, err = os.ReadFile(source)
	}
	if err != nil {
		return nil, err
	}
	var tasks []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if !taskID.MatchString(line) {
			return nil, fmt.Errorf("%q is no task id", line)
		}
		tasks = append(tasks, line)
	}
	return tasks, nil
}
