package ziniao

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"cdpmux/lifecycle"
)

// record is what the next proxy needs to know of the open store: to open it
// again would replace it, with all its tabs.
type record struct {
	Addr    string `json:"addr"`    // of the client's API
	Profile string `json:"profile"` // as the store was asked for there
	Account string `json:"account"` // a fingerprint
	Port    int    `json:"port"`
	WS      string `json:"ws"` // with the name of this very browser: its port may be another's by now
	ID      string `json:"id"`
}

// remember notes the open store. Without the file the next proxy opens it anew.
func (z *Ziniao) remember(ws string) {
	if z.cfg.Record == "" {
		return
	}
	data, err := json.Marshal(record{z.cfg.Addr, z.cfg.Profile, z.cfg.Account.fingerprint(), z.port, ws, z.id})
	if err == nil {
		err = lifecycle.WriteFile(z.cfg.Record, data)
	}
	if err != nil {
		z.cfg.Log.Warn().Err(err).Msg("the open ziniao store is not kept for the next proxy")
	}
}

func (z *Ziniao) forget() {
	if z.cfg.Record != "" {
		_ = os.Remove(z.cfg.Record)
	}
}

// adopt takes over the store that an earlier proxy opened, if its browser is
// still the same one and is live. Without one, the Endpoint is zero.
func (z *Ziniao) adopt(ctx context.Context) (lifecycle.Endpoint, error) {
	if z.cfg.Record == "" {
		return lifecycle.Endpoint{}, nil
	}
	data, err := os.ReadFile(z.cfg.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return lifecycle.Endpoint{}, nil
	}
	if err != nil {
		return lifecycle.Endpoint{}, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return lifecycle.Endpoint{}, fmt.Errorf("%s: %w; close the store in the Ziniao client, and delete it", z.cfg.Record, err)
	}
	if r.Addr != z.cfg.Addr || r.Profile != z.cfg.Profile || r.Account != z.cfg.Account.fingerprint() {
		return lifecycle.Endpoint{}, nil // it is of other flags
	}
	ws, err := z.version(ctx, r.Port)
	if err == nil && ws == r.WS {
		err = z.live(ctx, r.Port)
	}
	switch {
	case ctx.Err() != nil:
		return lifecycle.Endpoint{}, ctx.Err()
	case err != nil || ws != r.WS:
		return lifecycle.Endpoint{}, nil
	}
	if err := z.guard(); err != nil {
		return lifecycle.Endpoint{}, err
	}
	z.port, z.id, z.adopted = r.Port, r.ID, true
	z.cfg.Log.Info().Str("incarnation", z.id).Msg("open ziniao store adopted")
	return lifecycle.Endpoint{WS: ws, Incarnation: z.id, Adopted: true}, nil
}

// Recover takes over the store that an earlier proxy left open, and reports
// whether there is one. It opens none.
func (z *Ziniao) Recover(ctx context.Context) (bool, error) {
	if err := z.take(ctx); err != nil {
		return false, err
	}
	defer z.give()
	if z.port != 0 {
		return true, nil
	}
	endpoint, err := z.adopt(ctx)
	return endpoint.WS != "", err
}
