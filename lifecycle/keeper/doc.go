// Package keeper has the process that holds a Chrome, and the proxy's end of
// the talk with it.
//
// The keeper is Chrome's parent. It outlives its proxy for a while, so that
// the next proxy finds the browser as it was, and it is the only one who
// knows the browser's address. No way of dying leaves a browser alone:
//
//	proxy dies            the keeper waits for the next one (Spec.Grace), then ends the browser
//	keeper dies           Chrome sees the end of its debugging pipe and quits, with its cookies
//	both die              the same; what was stopped (SIGSTOP) is swept by the next proxy: Sweep
//	Chrome dies           the keeper ends the rest of it, notes that, and goes
//
// A proxy spawns the keeper with a Unix socket as file 3 and the lock that
// allows one keeper as file 4, or finds it by its Record. Both sides send lines of JSON: the proxy Orders (the first one is
// the Spec), the keeper Reports. The newest connection is the proxy.
//
// With Spec.Upstream the keeper also relays Chrome's pipe, to one proxy at a
// time, and Chrome opens no port.
package keeper
