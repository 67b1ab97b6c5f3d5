// Package lifecycle owns the browser's life: when it may start, who starts it,
// how often, when it is idle, and what proves its end. It knows nothing of
// clients and messages.
//
//	Life          one store's browser over time; what the proxy calls
//	Breaker       refuses a storm of relaunches; pure
//	Picture       is it idle?; pure
//	LaunchLock    one launch at a time on a machine
//	Reaper        ends daemons that agents have left behind
//	Home, Store   the state directory, the ports, one proxy per store
//	Failure       why there is no browser: one closed list of kinds
//	Attach        the backend for a browser that somebody else runs
//
// The other backends are packages: chrome (a Chrome of our own, which a
// keeper process holds) and ziniao.
//
// # Adding a backend
//
// A backend is a type with the three methods of Backend:
//
//   - Start returns the address of a browser that answers. It is called again
//     whenever the proxy has lost its connection, so it returns the same
//     address while the same browser runs, and starts another one when that
//     one has ended. Right before each launch it asks its Gate, with the end
//     that the launch follows. When ctx ends, whatever was half-started is gone.
//   - Stop ends what Start began, and only that: a browser which the backend
//     did not start is never signalled. Its Receipt says what was seen, not
//     what was hoped for.
//   - Probe says whether that browser is there and answers, and changes nothing.
//
// Report why a start did not work as a *Failure, so that clients and operators
// get its kind and the next step. Then add the name to the --browser flag in
// cmd/cdpmux/options.go.
package lifecycle
