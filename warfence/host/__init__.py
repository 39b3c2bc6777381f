"""What backends share on the host: worker lanes, stage calls, a block without collection."""
