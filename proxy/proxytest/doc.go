// Package proxytest has what tests of a CDP proxy need at both of its ends, as
// httptest has for HTTP:
//
//   - [Client], a raw connection: sends any text, keeps every text it gets;
//   - [Browser], a fake browser: sessions and targets as Chrome has them, and
//     faults on demand;
//   - [Chromium], the real browser, started for one test and verified to be
//     gone after it;
//   - [Site], a local web site under two names.
//
// The fake plays by what was measured on Chromium 156; the package's tests run
// the same scenarios on both and compare what comes, message by message.
package proxytest
