# The variables of one environment. Copy this to NAME.tfvars. Never put the Stripe key
# here.
environment = "example"
region      = "eu-west-1"

# Without a topic, alarms notify nobody.
# alarm_topic_arn = "arn:aws:sns:eu-west-1:111122223333:oncall"
