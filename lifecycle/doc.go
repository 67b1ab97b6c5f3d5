// Package lifecycle owns the browser's life: it finds Chrome, launches it,
// proves it ready, stops it and verifies that nothing of it is left. It knows
// nothing of clients and messages.
//
// It also keeps the state directory (Home): which stores exist, their ports,
// and the lock that allows one proxy per store.
//
// # Adding a backend
//
// A backend is a type with the three methods of Backend:
//
//   - Start returns the address of a browser that answers. It is called again
//     whenever the proxy has lost its connection, so it returns the same
//     address while the same browser runs, and starts another one when that
//     one has ended. When ctx ends, whatever was half-started is gone.
//   - Stop ends what Start began, and only that: a browser which the backend
//     did not start is never signalled. Its Receipt says what was seen, not
//     what was hoped for.
//   - Probe says whether that browser is there and answers, and changes nothing.
//
// Report why a start did not work as a *Failure, so that clients and operators
// get its kind and the next step. Then add the name to the --browser flag in
// cmd/cdpmux/serve.go.
package lifecycle
