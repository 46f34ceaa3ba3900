from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('console', '0007_alerts'),
    ]

    operations = [
        migrations.CreateModel(
            name='TotalsReset',
            fields=[
                ('pk', models.CompositePrimaryKey('destination', 'of_broker', blank=True, editable=False, primary_key=True, serialize=False)),
                ('destination', models.IntegerField(help_text='0: when those of the whole broker were reset.')),
                ('of_broker', models.BooleanField(help_text='With those of all others; a reset of this one alone leaves it as it is, and with it the sums.')),
                ('at', models.DateTimeField()),
                ('accepted_total', models.BigIntegerField()),
                ('settled_total', models.BigIntegerField()),
                ('dead_total', models.BigIntegerField()),
                ('expired_total', models.BigIntegerField()),
                ('redelivered_total', models.BigIntegerField()),
            ],
        ),
    ]
