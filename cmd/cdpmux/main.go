// Command cdpmux lets many CDP clients drive one Chrome, each as if it were
// alone. It joins the packages: proxy carries the messages, lifecycle has the
// browser and the state directory, wrapper names the stores and makes the
// scripts of their agents.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitHeld        = 3  // another proxy has the store
	exitNotVerified = 4  // stopped, but processes of the browser may be left
	exitTryLater    = 75 // EX_TEMPFAIL
)

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer) int {
	root := rootCommand(stdout, stderr)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	code, next := explain(cmd, err)
	if next != "" {
		next = "; next: " + next
	}
	fmt.Fprintf(stderr, "cdpmux: %v%s\n", err, next)
	return code
}

// rootCommand is the whole command line.
func rootCommand(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "cdpmux",
		Short: "Many CDP clients, one Chrome",
		Example: `  cdpmux serve --store shop
  cdpmux ensure --store shop
  cdpmux status`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(serveCommand(), keeperCommand(), statusCommand(), downloadsCommand(), wrapperCommand(), storesCommand(), versionCommand())
	root.AddCommand(ensureCommand(), stopCommand(), disableCommand(), enableCommand(), urlCommand(), holdCommand(), reapCommand(), sessionCommand())
	root.AddCommand(doctorCommand(), topCommand(), traceCommand(), manCommand())
	root.SetOut(stdout) // before complete, whose commands remember it
	root.SetErr(stderr)
	complete(root)
	return root
}

// runtimeError is an error after the command line was understood; every other
// one is a mistake in how we were called.
type runtimeError struct{ error }

func (e runtimeError) Unwrap() error { return e.error }

// errNotVerified is the end of a serve that could not see its browser gone.
var errNotVerified = errors.New("the browser was stopped, but not all of it is seen gone")

// explain gives the exit code of an error and what to do next.
func explain(cmd *cobra.Command, err error) (code int, next string) {
	var (
		runtime runtimeError
		locked  *lifecycle.LockedError
		failure interface { // a lifecycle.Failure, or one that the proxy passes on
			Retryable() bool
			Next() string
		}
		refused *refusal
		ended   *serveEnded
		other   interface{ Next() string }
	)
	switch {
	case !errors.As(err, &runtime):
		return exitUsage, cmd.CommandPath() + " --help"
	case errors.As(err, &locked):
		return exitHeld, "connect to that one, or stop it first"
	case errors.As(err, &failure):
		if failure.Retryable() {
			return exitTryLater, failure.Next()
		}
		return exitFailed, failure.Next()
	case errors.As(err, &refused):
		if refused.Retryable {
			return exitTryLater, refused.Next()
		}
		return exitFailed, refused.Next()
	case errors.As(err, &ended):
		return ended.code, ended.Next()
	case errors.Is(err, errNotVerified):
		return exitNotVerified, "run cdpmux stop again; if it stays so, end the processes that it names, which the log calls \"left\""
	case errors.As(err, &other):
		return exitFailed, other.Next()
	}
	return exitFailed, ""
}
